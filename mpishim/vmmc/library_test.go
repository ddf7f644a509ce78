package main

import (
	"os/exec"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mpishim/testing/library"
)

var lib = library.Library{Name: "vmmc"}

func TestMain(m *testing.M) { lib.Main(m) }

func TestEveryFunctionDoesWhatTheHeaderSays(t *testing.T) {
	program := lib.Compile(t, "testdata/behaviour.c")
	for _, address := range []string{"unix:" + lib.Dir + "/b", "tcp:127.0.0.1:0"} {
		if out := library.Run(t, program, address); out != "all as the header says\n" {
			t.Errorf("%s: %s", address, out)
		}
	}
}

// See docs/host-process.md.
func TestLibraryLeavesTheProcessAlone(t *testing.T) {
	program := lib.Compile(t, "testdata/host.c")
	if out := library.Run(t, "sh", "-c", "ulimit -Sn 200 && exec "+program+" unix:"+lib.Dir+"/h"); out != "as before\n" {
		t.Error(out)
	}
	if out, err := exec.Command("sh", "-c", "ulimit -v 300000 && exec "+program).CombinedOutput(); err == nil {
		t.Errorf("with 300 MB of address space it says %s", out)
	}
}

func TestExampleCarriesMessagesBetweenProcesses(t *testing.T) {
	program := lib.Compile(t, "../example/mailbox.c")
	address := "unix:" + lib.Dir + "/m"
	receiver := testwait.Command(t, program, "receive", address, "2")
	var out strings.Builder
	receiver.Stdout, receiver.Stderr = &out, &out
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	library.Run(t, program, "send", address, "one message") // it waits for the receiver
	library.Run(t, program, "send", address, "and another")
	if err := receiver.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	if !strings.Contains(out.String(), ": one message\n") || !strings.Contains(out.String(), ": and another\n") {
		t.Errorf("received %q", out.String())
	}
}

func TestExampleNamesItsAddresses(t *testing.T) {
	cmd := testwait.Command(t, lib.Compile(t, "../example/mailbox.c"))
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "node:NAME") {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
}

func TestHeaderIsOneOfCxx(t *testing.T) { lib.TestHeaderIsOneOfCxx(t) }

func TestLibraryExportsTheHeader(t *testing.T) { lib.TestExportsTheHeader(t) }
