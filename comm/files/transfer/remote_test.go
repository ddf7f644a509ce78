package transfer

import "testing"

func TestRemotesAreTakenApart(t *testing.T) {
	for s, want := range map[string][2]string{
		"host:7/a/b":         {"tcp:host:7", "a/b"},
		"tcp:host:7/a/":      {"tcp:host:7", "a/"},
		"host:7":             {"tcp:host:7", ""},
		"[::1]:7/a:b":        {"tcp:[::1]:7", "a:b"},
		"unix:/run/s:/a/b":   {"unix:/run/s", "a/b"},
		"unix:/run/s":        {"unix:/run/s", ""},
		"unix:s:/a:/b":       {"unix:s", "a:/b"},
		"node:files:/a":      {"node:files", "a"},
		"node:1000/files:/a": {"node:1000/files", "a"},
	} {
		if address, name, err := ParseRemote(s); err != nil || address != want[0] || name != want[1] {
			t.Errorf("%q: %q, %q, %v", s, address, name, err)
		}
	}
	for _, s := range []string{
		"", "f", "/f", "host/f", "host:/f", "unix:", "unix::/f", "node:", "node:n@host:7:/f", "tcp:", "tcp:/f", ":7/f",
	} {
		if address, name, err := ParseRemote(s); err == nil {
			t.Errorf("%q: %q, %q", s, address, name)
		}
	}
}

func TestNamesStayBelowWhatIsServed(t *testing.T) {
	for s, want := range map[string]string{
		"": ".", "/": ".", "a": "a", "/a/b/": "a/b", "../../x": "x", "a/../../x": "x", "a//./b": "a/b",
	} {
		if got := remoteName(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
