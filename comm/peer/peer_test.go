package peer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/comm/vmmc"
)

func TestOptionsThatContradictEachOtherAreRefused(t *testing.T) {
	for says, c := range map[string]struct {
		end    End
		target string
	}{
		"either a token or a certificate": {End{TokenFile: "t", Key: "k"}, ""},
		"go together":                     {End{Certificate: "c", Key: "k"}, ""},
		"names of peers are needed":       {End{Certificate: "c", Key: "k", Authorities: "a"}, ""},
		"needs the address":               {End{Bind: "unix:/run/t"}, "unix:/run/s"},
		"can't be reached from unix":      {End{From: "tcp:host:1"}, "unix:/run/s"},
		"give its address here":           {End{}, "tcp:server:1"},
		"is no address of this machine":   {End{From: "tcp:0.0.0.0:1"}, "tcp:server:1"},
		"write tcp:HOST:PORT":             {End{From: "tcp:host:1", Bind: "host:1"}, "tcp:server:1"},
	} {
		if err := c.end.Check(c.target); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v to %q: %v, want %q", c.end, c.target, err, says)
		}
	}
	for _, target := range []string{"", "unix:/run/s", "node:n", "tcp:127.0.0.1:1", "tcp:[::1]:1", "tcp:localhost:1"} {
		if err := (&End{}).Check(target); err != nil {
			t.Errorf("%q: %v", target, err)
		}
	}
}

// What this end chooses goes away with it.
func TestSocketThatIsChosenIsRemoved(t *testing.T) {
	c, err := (&End{}).Callback("unix:/run/s", "test")
	if err != nil {
		t.Fatal(err)
	}
	n, err := vmmc.Open(vmmc.Options{Listen: []string{c.Listen}})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(c.Address(n), "unix:")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	n.Close()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("its directory is left")
	}
}

// The name that is in a certificate stays, with the port that the kernel chose.
func TestPortsThatTheKernelChoosesAreTold(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	for _, e := range []End{{From: "tcp:localhost:0"}, {From: "tcp:localhost:0", Bind: "tcp:127.0.0.1:0"}, {}} {
		c, err := e.Callback("tcp:localhost:1", "test")
		if err != nil {
			t.Fatal(err)
		}
		n, err := vmmc.Open(vmmc.Options{Listen: []string{c.Listen}})
		if err != nil {
			t.Skipf("no localhost: %v", err)
		}
		if a := c.Address(n); !strings.HasPrefix(a, "tcp:localhost:") || strings.HasSuffix(a, ":0") {
			t.Errorf("%+v is told as %s", e, a)
		}
		n.Close()
	}
	c, err := (&End{From: "tcp:client:7", Bind: "tcp:127.0.0.1:0"}).Callback("tcp:server:1", "test")
	if err != nil || c.Address(nil) != "tcp:client:7" || c.Listen != "tcp:127.0.0.1:0" {
		t.Errorf("%+v, %v", c, err)
	}
}
