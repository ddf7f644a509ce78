package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// runtimeDir makes a directory of the test the runtime directory.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir := testwait.ShortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

// startNode runs pinwheel node until the test ends.
func startNode(t *testing.T, dir string) {
	t.Helper()
	cmd := testwait.Command(t, binary, "node")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	answers(t, filepath.Join(dir, "pinwheel-node"))
}

// answers waits until a broker answers.
func answers(t *testing.T, socket string) {
	t.Helper()
	testwait.Until(t, "the broker answers", func() bool {
		_, err := broker.List(context.Background(), socket)
		return err == nil
	})
}

func TestNodeListsExports(t *testing.T) {
	testwait.Bound(t)
	dir := runtimeDir(t)
	_, stderr, state := pinwheel(t, "node exports")
	if state.ExitCode() != 1 {
		t.Errorf("without a broker: %v", state)
	}
	oneLine(t, stderr, "start one with: pinwheel node")
	startNode(t, dir)
	exporter, err := vmmc.Open(vmmc.Options{Listen: []string{"node:weather"}})
	if err != nil {
		t.Fatal(err)
	}
	defer exporter.Close()
	memory, err := exporter.Alloc(1 << 20)
	if err == nil {
		_, err = exporter.Export(7, memory, vmmc.Permissions{UIDs: []uint32{uint32(os.Geteuid())}}, vmmc.ExportOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	i, err := exporter.Import(context.Background(), 7, "node:weather")
	if err != nil || !i.Shared() {
		t.Fatal(i, err)
	}
	stdout, stderr, state := pinwheel(t, "node exports")
	lines := strings.Split(stdout, "\n")
	if !state.Success() || stderr != "" || len(lines) != 3 || !strings.HasPrefix(lines[0], "USER ") ||
		!strings.Contains(lines[1], " weather ") || !strings.Contains(lines[1], " 7  ") ||
		!strings.Contains(lines[1], "1.0 MiB") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	stdout, _, _ = pinwheel(t, "node exports --json")
	var got struct{ Processes []broker.Process }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Processes) != 1 {
		t.Fatalf("%v, %q", err, stdout)
	}
	p := got.Processes[0]
	stdout, _, state = pinwheel(t, "top --once")
	if !state.Success() || !strings.Contains(stdout, "vmmc weather (process ") || !strings.Contains(stdout, "1 importer,") {
		t.Errorf("top: %v, %q", state, stdout)
	}
	if stdout, _, _ = pinwheel(t, "metrics"); !strings.Contains(stdout, "pinwheel_vmmc_exports{pid=") {
		t.Errorf("metrics: %q", stdout)
	}
	if p.Name != "weather" || p.PID != os.Getpid() || len(p.Exports) != 1 || len(p.Imports) != 1 ||
		p.Exports[0].Importers != 1 || p.Imports[0].Exporter != "node:weather" {
		t.Errorf("%+v", p)
	}
}

func TestNodeWithoutIdentityListensToNoOtherNode(t *testing.T) {
	runtimeDir(t)
	for line, says := range map[string]string{
		"node --listen 127.0.0.1:0":                                   "--listen needs --token-file",
		"node --listen 127.0.0.1:0 --certificate x":                   "go together",
		"node --token-file t --certificate x --key x --authorities x": "either a token or a certificate",
	} {
		usageError(t, line, says)
	}
}

// Two daemons on one machine stand for two nodes.
func TestProgramsOfTwoNodesFindEachOther(t *testing.T) {
	testwait.Bound(t)
	dir := runtimeDir(t)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	for _, args := range [][]string{
		{"node", "--socket", filepath.Join(dir, "a"), "--token-file", token, "--name", "a"},
		{"node", "--socket", filepath.Join(dir, "b"), "--token-file", token, "--name", "b", "--listen", "127.0.0.1:0"},
	} {
		cmd := testwait.Command(t, binary, args...)
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		answers(t, args[2])
	}
	text, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	_, address, ok := strings.Cut(string(text), "other nodes find it at ")
	if !ok {
		t.Fatalf("said %q", text)
	}
	address, _, _ = strings.Cut(address, "\n")
	exporter, err := vmmc.Open(vmmc.Options{
		Broker: filepath.Join(dir, "b"), Listen: []string{"node:weather"}, Nodes: []string{"a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exporter.Close()
	memory := make([]byte, 100)
	p := vmmc.Permissions{Peers: []string{"model@a"}}
	if _, err := exporter.Export(1, memory, p, vmmc.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	importer, err := vmmc.Open(vmmc.Options{Name: "model", Broker: filepath.Join(dir, "a")})
	if err != nil {
		t.Fatal(err)
	}
	defer importer.Close()
	if _, err := importer.Import(context.Background(), 1, "node:weather@"+address); err != nil {
		t.Error(err)
	}
}

func TestSignalsEndTheNode(t *testing.T) {
	commandtest.NotIgnored(t, unix.SIGTERM)
	dir := runtimeDir(t)
	commandtest.EndsBy(t, unix.SIGTERM, func() *exec.Cmd {
		cmd := testwait.Command(t, binary, "node")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		answers(t, filepath.Join(dir, "pinwheel-node"))
		return cmd
	})
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// tool returns a program of systemd.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s, which is part of systemd: %v", name, err)
	}
	return path
}

func TestUnitsAreAsSystemdWantsThem(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	for _, manager := range []string{"system", "user"} {
		dir := t.TempDir()
		all, err := filepath.Glob(filepath.Join("systemd", manager, "*"))
		if err != nil || len(all) < 3 {
			t.Fatalf("units %q, %v", all, err)
		}
		var units []string
		for _, name := range all {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			// The command must be there for a check.
			unit := strings.ReplaceAll(string(text), "/usr/local/bin/pinwheel", binary)
			path := filepath.Join(dir, filepath.Base(name))
			if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
				t.Fatal(err)
			}
			units = append(units, path)
		}
		cmd := testwait.Command(t, analyze, append([]string{"--" + manager, "--man=no", "verify"}, units...)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "pinwheel") {
			t.Errorf("%s: %v, %s", manager, err, out)
		}
	}
}

func TestSystemdMayOpenTheSocket(t *testing.T) {
	activate := tool(t, "systemd-socket-activate")
	testwait.Bound(t)
	dir := runtimeDir(t)
	socket := filepath.Join(dir, "given")
	cmd := testwait.Command(t, activate, "--seqpacket", "--listen="+socket, binary, "node")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	answers(t, socket)
	if _, err := os.Stat(filepath.Join(dir, "pinwheel-node")); err == nil {
		t.Error("it made a socket of its own")
	}
}
