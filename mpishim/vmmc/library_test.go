package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// run runs a command and returns what it printed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := testwait.Command(t, name, args...)
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR=") // the token of this user is no business of a test
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// dir has the library, and the sockets of tests: it is short, for sun_path.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "capi"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// library builds the library once.
func library(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler, cc")
	}
	if _, err := os.Stat(dir + "/libpinwheel-vmmc.so"); err != nil {
		run(t, "make", "-s", "-C", "../..", "SHIM_LIB="+dir, dir+"/libpinwheel-vmmc.so.0")
	}
}

// compile builds a program in C against the library, without any warning.
func compile(t *testing.T, source string) (program string) {
	t.Helper()
	library(t)
	program = filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c"))
	run(t, "cc", "-O1", "-g", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I../include",
		"-o", program, source, "-L"+dir, "-lpinwheel-vmmc", "-lpthread", "-Wl,-rpath,"+dir)
	return program
}

func TestEveryFunctionDoesWhatTheHeaderSays(t *testing.T) {
	program := compile(t, "testdata/behaviour.c")
	for _, address := range []string{"unix:" + dir + "/b", "tcp:127.0.0.1:0"} {
		if out := run(t, program, address); out != "all as the header says\n" {
			t.Errorf("%s: %s", address, out)
		}
	}
}

// See docs/host-process.md.
func TestLibraryLeavesTheProcessAlone(t *testing.T) {
	program := compile(t, "testdata/host.c")
	if out := run(t, "sh", "-c", "ulimit -Sn 200 && exec "+program+" unix:"+dir+"/h"); out != "as before\n" {
		t.Error(out)
	}
	if out, err := exec.Command("sh", "-c", "ulimit -v 300000 && exec "+program).CombinedOutput(); err == nil {
		t.Errorf("with 300 MB of address space it says %s", out)
	}
}

func TestExampleCarriesMessagesBetweenProcesses(t *testing.T) {
	program := compile(t, "../example/mailbox.c")
	address := "unix:" + dir + "/m"
	receiver := testwait.Command(t, program, "receive", address, "2")
	var out strings.Builder
	receiver.Stdout, receiver.Stderr = &out, &out
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	run(t, program, "send", address, "one message") // it waits for the receiver
	run(t, program, "send", address, "and another")
	if err := receiver.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	if !strings.Contains(out.String(), ": one message\n") || !strings.Contains(out.String(), ": and another\n") {
		t.Errorf("received %q", out.String())
	}
}

func TestHeaderIsOneOfCxx(t *testing.T) {
	if _, err := exec.LookPath("c++"); err != nil {
		t.Skip("needs a C++ compiler, c++")
	}
	run(t, "c++", "-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", "c++", "../include/pinwheel_vmmc.h")
}

// Programs see the functions of the header, and nothing else of the library.
func TestLibraryExportsTheHeader(t *testing.T) {
	if _, err := exec.LookPath("nm"); err != nil {
		t.Skip("needs nm of binutils")
	}
	library(t)
	header, err := os.ReadFile("../include/pinwheel_vmmc.h")
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for line := range strings.Lines(run(t, "nm", "-D", "--defined-only", dir+"/libpinwheel-vmmc.so.0")) {
		f := strings.Fields(line)
		name, _, _ := strings.Cut(f[len(f)-1], "@")
		if name == "PINWHEEL_VMMC_0" {
			continue
		}
		functions++
		if !strings.Contains(string(header), " "+name+"(") {
			t.Errorf("%s is no function of the header", name)
		}
	}
	if want := strings.Count(string(header), "\nint pinwheel_vmmc_") + strings.Count(string(header), "\nsize_t pinwheel_vmmc_"); functions != want {
		t.Errorf("%d functions, and %d in the header", functions, want)
	}
}
