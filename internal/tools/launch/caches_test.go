package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func init() { devices = nil } // plans are the same on a machine with accelerators

func TestHooksOfUCXGoWithItsCachesOnly(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	haveUCX(t, "1.13.1")
	for _, c := range []struct {
		environ string
		device  string
		want    bool
	}{
		{"", none, true},
		{"UCX_TLS=self,sm,rc", none, true},
		{"UCX_TLS=^cuda", none, true},
		{"UCX_KNEM_RCACHE=n", none, true},
		{"UCX_IB_REG_METHODS=rcache,direct", none, false}, // the user's cache needs them
		{"UCX_RCACHE_ENABLE=y", none, false},
		{"UCX_KNEM_RCACHE=y", none, false},
		{"UCX_MEMTYPE_CACHE=y", none, false},
		{"UCX_TLS=rc,cuda_copy", none, false},
		{"UCX_MEM_EVENTS=y", none, false}, // is kept
		{"", t.TempDir(), false},          // an accelerator
	} {
		t.Run(c.environ, func(t *testing.T) {
			before := devices
			devices = []string{c.device}
			t.Cleanup(func() { devices = before })
			vars, _ := turnCachesOff(strings.Fields("HOME=/ "+c.environ), nil)
			if got := slices.Contains(vars, variable{"UCX_MEM_EVENTS", "n"}); got != c.want {
				t.Errorf("turned off: %v", got)
			}
		})
	}
}

func TestVersionsOfUCXAreRead(t *testing.T) {
	for line, want := range map[string]string{
		"# Version 1.13.1\n": "1.13", "# Library version: 1.18.0\n": "1.18", "# UCT version=1.8.0 revision 0\n": "1.8",
		"# Library path: /opt/1.2/lib\n": "",
	} {
		got := ""
		if major, minor, known := ucxVersion(line); known {
			got = fmt.Sprintf("%d.%d", major, minor)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// haveUCX makes a version of UCX the one that is found; "" for none.
func haveUCX(t *testing.T, version string) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	script := "#!/bin/sh\necho '# Version " + version + "'\n" // since 1.14 "# Library version: "
	if err := os.WriteFile(filepath.Join(bin, "ucx_info"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
}

// Without events, UCX's caches of registrations in other libraries (UCC) can't be made.
func TestHooksOfUCXStayWhereTheyDoNoHarm(t *testing.T) {
	for _, c := range []struct {
		version, environ, command string
		off                       bool
	}{
		{"1.13.1", "", "mpirun app", true},
		{"1.14.0", "", "mpirun app", true},
		{"", "", "mpirun app", true}, // not known
		{"1.15.0", "", "mpirun app", false},
		{"1.20.1", "", "mpirun app", false},
		{"2.0.0", "", "mpirun app", false},
		{"1.13.1", "UCC_TLS=ucp,sharp", "mpirun app", false},
		{"1.13.1", "OMPI_MCA_coll_ucc_enable=1", "mpirun app", false},
		{"1.13.1", "OMPI_MCA_coll_ucc_enable=0", "mpirun app", true},
		{"1.13.1", "", "mpirun --mca coll_ucc_enable 1 app", false},
		{"1.13.1", "", "mpirun -x UCC_TLS=ucp app", false},
	} {
		haveUCX(t, c.version)
		vars, _ := turnCachesOff(strings.Fields("HOME=/ "+c.environ), strings.Fields(c.command))
		if off := slices.Contains(vars, variable{"UCX_MEM_EVENTS", "n"}); off != c.off {
			t.Errorf("%+v: %v", c, vars)
		}
	}
}

// Providers that register without libibverbs have nothing of Pinwheel, so they keep what they have.
func TestLibfabricKeepsItsCacheWhereItUsesNoVerbs(t *testing.T) {
	before := exists
	t.Cleanup(func() { exists = before })
	for device, want := range map[string]bool{"/dev/rv": true, "/dev/hfi1_0": true, "/dev/cxi0": true, "/dev/infiniband": false} {
		exists = func(path string) bool { return path == device }
		vars, _ := turnCachesOff([]string{"HOME=/"}, nil)
		kept := !slices.ContainsFunc(vars, func(v variable) bool { return strings.HasPrefix(v.name, "FI_") })
		if kept != want {
			t.Errorf("%s: turned off: %v", device, vars)
		}
	}
}
