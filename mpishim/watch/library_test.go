package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"pinwheel/mpishim/testing/library"
)

var lib = library.Library{Name: "watch"}

func TestMain(m *testing.M) { lib.Main(m) }

// behaves runs a program under a mechanism, or with another argument.
func behaves(t *testing.T, program, argument string) {
	t.Helper()
	// Before that, the library may say that nothing can be watched.
	switch out := library.Run(t, program, argument); {
	case strings.HasSuffix(out, "all as the header says\n"):
	case strings.HasSuffix(out, "not here\n"):
		t.Skipf("needs a kernel and the rights to watch by %s", argument)
	default:
		t.Error(out)
	}
}

func TestEveryFunctionDoesWhatTheHeaderSays(t *testing.T) {
	program := lib.Compile(t, "testdata/behaviour.c")
	for _, mechanism := range []string{"auto", "pfn", "uffd"} {
		t.Run(mechanism, func(t *testing.T) { behaves(t, program, mechanism) })
	}
}

func TestMonitorTellsCachesOfLibfabric(t *testing.T) {
	program := lib.Compile(t, "testdata/monitor.c", "-Icapi")
	for _, mechanism := range []string{"auto", "pfn", "uffd"} {
		t.Run(mechanism, func(t *testing.T) { behaves(t, program, mechanism) })
	}
}

// See docs/host-process.md.
func TestLibraryLeavesTheProcessAlone(t *testing.T) {
	program := lib.Compile(t, "testdata/host.c")
	if out := library.Run(t, "sh", "-c", "ulimit -Sn 200 && PINWHEEL_LOG=off exec "+program); out != "as before\n" {
		t.Error(out)
	}
}

// What Go has started goes on when a program closes the library.
func TestLibraryIsLoadedAndClosedAgainAndAgain(t *testing.T) {
	program := lib.Compile(t, "testdata/loaded.c")
	behaves(t, program, lib.Dir+"/libpinwheel-watch.so.0")
}

func TestHeaderIsOneOfCxx(t *testing.T) { lib.TestHeaderIsOneOfCxx(t) }

func TestLibraryExportsTheHeader(t *testing.T) { lib.TestExportsTheHeader(t) }

func TestStructuresAreThoseOfLibfabric(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler, cc")
	}
	if _, err := os.Stat("/usr/include/rdma/fi_ext.h"); err != nil {
		t.Skip("needs the headers of libfabric (make install-libfabric)")
	}
	library.Run(t, "cc", "-fsyntax-only", "-std=gnu11", "-Icapi", "testdata/abi.c")
}
