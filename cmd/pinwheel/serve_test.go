package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
	"pinwheel/verbs/rdma"
)

func TestWrongArgumentsOfFileCommands(t *testing.T) {
	long := "unix:/" + strings.Repeat("x", 107)
	for _, c := range []struct{ line, says string }{
		{"ls " + long + ":/", "a socket's path may have 107 bytes, and this one has 108"},
		{"serve . --listen " + long, "a socket's path may have 107 bytes, and this one has 108"},
		{"serve --listen unix:/x", "<dir>"},
		{"serve .", "--listen"},
		{"serve . --listen 7400", `--listen: "tcp:7400": write`},
		{"serve . --listen 127.0.0.1:99999", `"99999" is no port`},
		{"serve . --listen unix:", "write tcp:HOST:PORT"},
		{"serve . --listen unix:/x --strategy fast", "--strategy must be one of"},
		{"serve . --listen unix:/x --chunk 1", "--chunk must be from 4K"},
		{"serve . --listen unix:/x --depth -1", "--depth must be from 1"},
		{"serve . --listen unix:/x --budget lots", "--budget"},
		{"serve . --listen unix:/x --budget 0", "--budget must be 1M or more"},
		{"serve . --listen unix:/x --budget 4K", "--budget must be 1M or more"},
		{"serve . --listen unix:/x --max-clients 0", "--max-clients must be 1"},
		{"serve . --listen unix:/x --transport tcp", "--transport tcp is for HOST:PORT"},
		{"serve . --listen 127.0.0.1:0 --transport shm", "--transport shm is for unix:"},
		{"serve . --listen 127.0.0.1:0 --transport rdma --trusted-network", "--transport rdma lets none go there"},
		{"get 127.0.0.1:7/f . --transport rdma --trusted-network", "--transport rdma lets none go there"},
		{"serve . --listen unix:/x --data-listen 127.0.0.1:0", "--data-listen goes with --trusted-network"},
		{"serve . --listen 127.0.0.1:0 --trusted-network --data-listen foo", `--data-listen "foo": write HOST:PORT`},
		{"serve . --listen unix:/x --token-file t --key k", "either a token or a certificate"},
		{"get unix:/x:/f", "where does unix:/x:/f go? Give a second path"},
		{"get /f .", `"/f": write HOST:PORT/PATH`},
		{"get host/f .", "write HOST:PORT/PATH"},
		{"get :7400/f .", "write HOST:PORT/PATH"},
		{"get node:n@host:7:/f .", "write HOST:PORT/PATH"},
		{"get unix:/x:/f . --verify md5", "--verify must be one of"},
		{"get unix:/x:/f . --resume --verify none", "needs a checksum"},
		{"get unix:/x:/f . --transport rdma", "--transport rdma is for HOST:PORT"},
		{"get 127.0.0.1:7/f . --transport shm", "--transport shm is for unix:"},
		{"get 192.0.2.1:7/f .", "give its address here with --from"},
		{"get 192.0.2.1:7/f . --from unix:/x", "can't be reached"},
		{"get unix:/x:/f . --bind unix:/y", "needs the address"},
		{"get unix:/x:/f . --key k", "go together"},
		{"get unix:/x:/f . --timeout 0s", "--timeout must be more than 0"},
		{"get 127.0.0.1:99999/f .", `"99999" is no port`},
		{"ls 127.0.0.1:nosuchport", `"nosuchport" is no port`},
		{"put . ''", "<path> is empty"},
		{"ls", "<remote>"},
		{"ls unix:", "write HOST:PORT/PATH"},
		{"get unix:/s:/f 127.0.0.1:7/g", "are both at servers: get it from one, then put it to the other"},
		{"put unix:/s:/f node:n:/g", "are both at servers"},
		{"get f unix:/s:/g", "unix:/s:/g is at a server, and f is not: that is pinwheel put"},
		{"put unix:/s:/f g", "unix:/s:/f is at a server, and g is not: that is pinwheel get"},
		{"get unix:/s:/f unix:/t:/f .", "unix:/s:/f and unix:/t:/f are at two servers: get from one after the other"},
		{"get unix:/s:/f unix:/s:/g -", "one that is called - is ./-"},
		{"put - f unix:/s:/g", "one that is called - is ./-"},
		{"get --retry soon unix:/s:/f .", "--retry: \"soon\" is no time: write 30s, 10m, or a number of seconds"},
	} {
		usageError(t, c.line, c.says)
	}
}

func TestFaultsOfFileCommandsAreOneLine(t *testing.T) {
	testwait.Bound(t)
	t.Setenv("XDG_RUNTIME_DIR", testwait.ShortDir(t))
	dir := t.TempDir()
	s := startServer(t, dir, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	write(t, filepath.Join(dir, "f"), nil)
	if err := os.Symlink("/", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	for line, says := range map[string]string{
		"serve /nowhere --listen unix:/x":                  "/nowhere: no such file",
		"serve . --listen 0.0.0.0:0":                       "a certificate or a token is needed",
		"serve . --listen unix:/nowhere/x":                 "no such file",
		"get --retry 5 --timeout .1 unix:/nowhere:/f .":    "no server answers within 100ms: is pinwheel serve running",
		"get unix:/nowhere:/f .":                           "unix:/nowhere: nothing listens there: is pinwheel serve running?",
		"ls 127.0.0.1:1/f":                                 "127.0.0.1:1: nothing listens there: is pinwheel serve running?",
		"get --retry 5 --timeout 5 " + s.address + "out .": "out: leads out of the directory that is served",
		"get " + s.address + "none .":                      "none: no such file or directory",
		"get " + s.address + "../../f /nowhere/":           "/nowhere/: there is no such directory",
		"get " + s.address + " .":                          "say so with --recursive",
		"put " + binary + " " + s.address:                  "--allow-write",
		"put /nowhere " + s.address:                        "/nowhere: no such file or directory",
		"ls " + s.address + "none":                         "none: no such file or directory",
		"get --token-file /nowhere " + s.address + "f .":   "/nowhere",
	} {
		_, stderr, state := pinwheel(t, line)
		if state.ExitCode() != 1 {
			t.Errorf("%q: %v", line, state)
		}
		oneLine(t, stderr, says)
	}
}

// Nobody wants to know of the sockets that the two ends have chosen.
func TestServerThatIsLostIsNamedAsItWasGiven(t *testing.T) {
	testwait.Bound(t)
	for name, listen := range map[string]string{
		"tcp": "127.0.0.1:0", "unix": "unix:" + filepath.Join(testwait.ShortDir(t), "s"),
	} {
		t.Run(name, func(t *testing.T) {
			there, here := t.TempDir(), t.TempDir()
			write(t, filepath.Join(there, "f"), contents(t, 96<<20))
			s := startServer(t, there, listen)
			cmd := testwait.Command(t, binary, "get", s.address+"f", here)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "a part of the file is there", func() bool {
				_, err := os.Stat(filepath.Join(here, "f"))
				return hasPart(here, 1) || err == nil
			})
			s.kill()
			if _ = cmd.Wait(); cmd.ProcessState.Success() {
				t.Skip("the copy was faster than the signal")
			}
			at := strings.TrimRight(strings.TrimPrefix(s.address, "tcp:"), "/:")
			oneLine(t, errs.String(), "pinwheel: "+at+": is pinwheel serve still running there? ")
			if strings.Contains(errs.String(), "->") {
				t.Errorf("it says %q", errs.String())
			}
		})
	}
}

// A server that another user has is found out at once.
func TestServerOfAnotherUserIsOneLine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs to become another user")
	}
	testwait.Bound(t)
	dir := testwait.ShortDir(t)
	startServer(t, t.TempDir(), "unix:"+filepath.Join(dir, "s"))
	others := filepath.Join(dir, "pinwheel") // where another user may run it, and have a socket
	program, err := os.ReadFile(binary)
	if err = errors.Join(err, os.WriteFile(others, program, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	for mode, says := range map[os.FileMode]string{
		0o700: "/s: permission denied: does the server belong to another user?",
		0o777: "/s: the server is of another user: process ",
	} {
		if err := os.Chmod(filepath.Join(dir, "s"), mode); err != nil {
			t.Fatal(err)
		}
		cmd := testwait.Command(t, others, "ls", "--timeout", "5s", "unix:"+filepath.Join(dir, "s")+":/")
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("mode %v: %v", mode, cmd.ProcessState)
		}
		oneLine(t, errs.String(), says)
	}
}

func TestFilesGoBothWays(t *testing.T) {
	testwait.Bound(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", testwait.ShortDir(t))
	commandtest.NotIgnored(t, unix.SIGTERM)
	tcp, trusting := []string{"--transport", "tcp"}, []string{"--trusted-network"}
	withToken := []string{"--token-file", token}
	type way struct {
		listen, transport string
		server, client    []string
	}
	ways := map[string]way{
		"shared memory":         {"unix:" + filepath.Join(testwait.ShortDir(t), "s"), "shm", nil, nil},
		"TLS":                   {"127.0.0.1:0", "tls", tcp, nil},
		"TLS with a token":      {"127.0.0.1:0", "tls", append(withToken, tcp...), withToken},
		"sendfile":              {"127.0.0.1:0", "tcp", append(trusting, tcp...), trusting},
		"only one of them does": {"127.0.0.1:0", "tls", append(trusting, tcp...), nil},
	}
	if rdma.Probe() == nil {
		ways["RDMA"] = way{"127.0.0.1:0", "rdma", []string{"--transport", "rdma"}, []string{"--transport", "rdma"}}
	}
	for what, c := range ways {
		t.Run(what, func(t *testing.T) {
			there, here := t.TempDir(), t.TempDir()
			s := startServer(t, there, c.listen, append(c.server, "--allow-write")...)
			content := contents(t, 5<<20+1)
			write(t, filepath.Join(there, "f"), content)
			if err := os.Mkdir(filepath.Join(there, "d"), 0o755); err != nil {
				t.Fatal(err)
			}
			run := func(line string) string {
				t.Helper()
				args := append(strings.Fields(line), c.client...)
				stdout, stderr, state := pinwheel(t, strings.Join(args, " "))
				if !state.Success() || stderr != "" {
					t.Errorf("%s: %v, %q", line, state, stderr)
				}
				return stdout
			}
			var r struct {
				Files, Bytes int64
				Transport    string
				Verify       string
			}
			out := run("get --json --verify sha256 " + s.address + "f " + here)
			err := json.Unmarshal([]byte(out), &r)
			if err != nil || r.Files != 1 || r.Bytes != 5<<20+1 || r.Transport != c.transport || r.Verify != "sha256" {
				t.Errorf("%q, %v", out, err)
			}
			holds(t, filepath.Join(here, "f"), content)
			out = run("put " + filepath.Join(here, "f") + " " + s.address + "d/")
			if !strings.Contains(out, "1 file, 5.0 MiB in ") {
				t.Errorf("%q", out)
			}
			holds(t, filepath.Join(there, "d/f"), content)
			run("get -r " + s.address + " " + filepath.Join(here, "all"))
			holds(t, filepath.Join(here, "all/d/f"), content)
			if out := run("ls " + s.address); out != "d\nf\n" {
				t.Errorf("ls: %q", out)
			}
			var listed struct{ Entries []entry }
			err = json.Unmarshal([]byte(run("ls --json "+s.address+"d")), &listed)
			if err != nil || len(listed.Entries) != 1 ||
				listed.Entries[0].Type != "file" || listed.Entries[0].Size != 5<<20+1 || listed.Entries[0].Mode != "0644" {
				t.Errorf("%+v, %v", listed, err)
			}
			commandtest.EndsBy(t, unix.SIGTERM, func() *exec.Cmd { return s.cmd })
		})
	}
}

func TestCopySaysWhatItHasSkipped(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	s := startServer(t, there, "unix:"+filepath.Join(socketDir(t), "s"))
	write(t, filepath.Join(there, "f"), nil)
	if err := os.Symlink("f", filepath.Join(there, "link")); err != nil {
		t.Fatal(err)
	}
	if stdout, _, _ := pinwheel(t, "get -r "+s.address+" "+here); !strings.Contains(stdout, ": 1 file, 0 B in ") ||
		!strings.HasSuffix(stdout, " by shm; skipped: 1 (links and special files)\n") {
		t.Errorf("%q", stdout)
	}
}

// Whoever names a file does not write to the terminal of those who copy it.
func TestNamesAreNoCommandsOfTheTerminal(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	const name, shown = "a\x1b[2J\nb", `a\x1b[2J\nb`
	write(t, filepath.Join(there, name), []byte("x"))
	for _, c := range []struct {
		says string
		args []string
	}{
		{s.address + shown + ": 1 file", []string{"get", s.address + name, here}},
		{shown + ": 1 file", []string{"put", filepath.Join(here, name), s.address}},
		{shown, []string{"ls", s.address}},
		{`none\nsuch: no such file`, []string{"get", s.address + "none\nsuch", here}},
		{"", []string{"get", "-r", s.address + name, here + "/none/none"}},
		{"", []string{"put", here, s.address + name}},
	} {
		cmd := testwait.Command(t, binary, c.args...)
		out, _ := cmd.CombinedOutput() // some fail
		lines := strings.TrimSuffix(string(out), "\n")
		if strings.ContainsAny(lines, "\x1b\n") || !strings.Contains(lines, c.says) {
			t.Errorf("%q prints %q", c.args, out)
		}
	}
}

// The last line of the server has its counters.
func TestServerCounts(t *testing.T) {
	testwait.Bound(t)
	commandtest.NotIgnored(t, unix.SIGTERM)
	dir := t.TempDir()
	socket := filepath.Join(testwait.ShortDir(t), "s")
	s := startServer(t, dir, "unix:"+socket)
	write(t, filepath.Join(dir, "f"), contents(t, 1<<20))
	if _, stderr, state := pinwheel(t, "get "+s.address+"f "+t.TempDir()); !state.Success() {
		t.Error(state, stderr)
	}
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	line, err := s.out.ReadBytes('\n')
	var counts map[string]int64
	if err == nil {
		err = json.Unmarshal(line, &counts)
	}
	if err != nil || counts["bytes_sent"] != 1<<20 || counts["clients_ever"] != 1 || counts["pinned_bytes"] != 0 {
		t.Errorf("%q, %v", line, err)
	}
	_ = s.cmd.Wait() // the status says it all
	commandtest.EndedBy(t, s.cmd, unix.SIGTERM)
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}

func TestServerHasANameAtTheBroker(t *testing.T) {
	testwait.Bound(t)
	dir := runtimeDir(t)
	startNode(t, dir)
	there := t.TempDir()
	startServer(t, there, "node:files")
	write(t, filepath.Join(there, "f"), []byte("by name"))
	here := t.TempDir()
	if _, stderr, state := pinwheel(t, "get node:files:/f "+here); !state.Success() || stderr != "" {
		t.Errorf("%v, %q", state, stderr)
	}
	holds(t, filepath.Join(here, "f"), []byte("by name"))
}

func TestNamesThatAreNotUTF8AreCopied(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := startServer(t, there, "unix:"+filepath.Join(socketDir(t), "s"), "--allow-write")
	const name = "Gr\xfc\xdfe"
	write(t, filepath.Join(there, name), []byte("x"))
	for _, line := range []string{"get -r " + s.address + " " + here, "put -r " + here + " " + s.address + "back"} {
		if _, stderr, state := pinwheel(t, line); !state.Success() || stderr != "" {
			t.Errorf("%s: %v, %q", line, state, stderr)
		}
	}
	holds(t, filepath.Join(here, name), []byte("x"))
	holds(t, filepath.Join(there, "back", name), []byte("x"))
	stdout, _, _ := pinwheel(t, "ls --json "+s.address+"back")
	var listed struct{ Entries []entry }
	if err := json.Unmarshal([]byte(stdout), &listed); err != nil || len(listed.Entries) != 1 ||
		string(listed.Entries[0].Bytes) != name {
		t.Errorf("%s, %v", stdout, err)
	}
}

// Who has no token is not told of another one.
func TestTokensThatDiffer(t *testing.T) {
	testwait.Bound(t)
	t.Setenv("XDG_RUNTIME_DIR", testwait.ShortDir(t))
	dir := t.TempDir()
	token := func(name string) []string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name, 32)), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--token-file", path}
	}
	for _, c := range []struct {
		server, client []string
		says           string
	}{
		{token("a"), nil, ": the server wants a token or a certificate, or is of another user: give its token with --token-file"},
		{token("a"), token("b"), ": the server does not have the token in " + dir + "/b: it has another one, a certificate, or none"},
		{nil, token("b"), ": the server does not have the token in " + dir + "/b: it has another one, a certificate, or none"},
	} {
		cmd := serverCommand(t, dir, "127.0.0.1:0", c.server...)
		cmd.Stderr = new(bytes.Buffer) // it says whom it refuses
		s := runServer(t, dir, cmd)
		_, stderr, state := pinwheel(t, "ls "+s.address+" "+strings.Join(c.client, " "))
		if state.ExitCode() != 1 {
			t.Errorf("%v", state)
		}
		oneLine(t, stderr, strings.TrimRight(strings.TrimPrefix(s.address, "tcp:"), "/")+c.says)
		s.kill()
	}
}
