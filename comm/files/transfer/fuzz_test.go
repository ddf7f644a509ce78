package transfer

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a user writes becomes a name below what is served, and a name of the server a file of its directory.
func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"host:7/a", "tcp:[::1]:7/../x", "unix:/s:/a", "node:n:/", "..", "a/../../b", ".f." + newKey + ".partial", "\x00", "\xff\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		address, name, err := ParseRemote(s)
		if err == nil && (address == "" || !strings.HasSuffix(s, name)) {
			t.Errorf("%q: %q, %q", s, address, name)
		}
		if r := remoteName(s); !filepath.IsLocal(r) || strings.HasSuffix(r, "/") || filepath.Clean(r) != r {
			t.Errorf("%q is %q at the server", s, r)
		}
		if checkName(s) != nil {
			return
		}
		if filepath.Base(s) != s || s == ".." {
			t.Errorf("%q is a name of a directory's", s)
		}
		p := partialName(s, newKey)
		if len(p) > unix.NAME_MAX || !isPartial(p) || partialName(s, newKey[1:]+"1") == p || partialName(s+"x", newKey) == p {
			t.Errorf("%q is %q while it is copied", s, p)
		}
	})
}
