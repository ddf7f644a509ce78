package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"pinwheel/comm/files"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/machine"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// serverEnv has this binary serve a directory instead of testing: what a serverSetting says.
const serverEnv = "PINWHEEL_FAULTS_SERVER"

type serverSetting struct {
	Dir      string
	Strategy pipe.Strategy
}

func TestMain(m *testing.M) {
	if s := os.Getenv(serverEnv); s != "" {
		if err := serveHere(s); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveHere prints the address on a line, and its counters for each line of standard input. It ends with that. Requests
// come through the connection: with RDMA, what they go into would be pinned while clients ask for something.
func serveHere(setting string) error {
	var s serverSetting
	if err := json.Unmarshal([]byte(setting), &s); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close() // only read from
	n, err := vmmc.Open(vmmc.Options{
		Name: "server", Token: token, Listen: []string{"tcp:127.0.0.1:0"}, Heartbeat: heartbeat, MaxPinned: uint64(mem.PageSize),
	})
	if err != nil {
		return err
	}
	defer n.Close() // a peer may be gone
	server, err := files.NewServer(n, root, files.ServerOptions{
		Peers: vmmc.Permissions{Peers: []string{"client"}}, Strategy: s.Strategy,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background()) }()
	fmt.Println(n.Addresses()[0])
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := out.Encode(server.Stats()); err != nil {
			return err
		}
	}
	if err := server.Close(); err != nil {
		return err
	}
	return <-ended
}

// serverProcess is a server in a process of its own, so that the kernel tells its memory from that of the client.
type serverProcess struct {
	t       *testing.T
	pid     int
	address string
	stdin   io.Writer
	stdout  *bufio.Reader
}

// startServer starts one, until the test ends.
func startServer(t *testing.T, s serverSetting) *serverProcess {
	t.Helper()
	setting, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := testwait.Command(t, os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+string(setting))
	cmd.Stderr = os.Stderr
	stdin, stdout := testwait.StartPiped(t, cmd)
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	p := &serverProcess{t: t, pid: cmd.Process.Pid, stdin: stdin, stdout: stdout}
	p.address = p.line()
	return p
}

func (p *serverProcess) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the server says %q, %v", line, err)
	}
	return line[:len(line)-1]
}

// stats returns the counters of the server.
func (p *serverProcess) stats() (s files.Stats) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin); err != nil {
		p.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(p.line()), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// memory is what the kernel says of a process, in bytes.
type memory struct {
	pinned    int64 // by devices
	anonymous int64 // that is there
}

// memory returns what the server has now.
func (p *serverProcess) memory() (m memory, err error) {
	root, status := os.DirFS("/"), fmt.Sprintf("proc/%d/status", p.pid)
	if m.pinned, err = machine.Bytes(root, status, "VmPin"); err == nil {
		m.anonymous, err = machine.Bytes(root, status, "RssAnon")
	}
	return m, err
}

// most returns the most that the server has of each while f runs.
func (p *serverProcess) most(f func()) memory {
	p.t.Helper()
	type seen struct {
		most memory
		err  error
	}
	over, result := make(chan struct{}), make(chan seen, 1)
	go func() {
		var s seen
		for going := true; going && s.err == nil; {
			select {
			case <-over:
				going = false // after one more look
			default:
			}
			var m memory
			m, s.err = p.memory()
			s.most.pinned, s.most.anonymous = max(s.most.pinned, m.pinned), max(s.most.anonymous, m.anonymous)
		}
		result <- s
	}()
	func() {
		defer close(over) // also if f ends the test
		f()
	}()
	s := testwait.Receive(p.t, "what the kernel says of the server", result)
	if s.err != nil {
		p.t.Fatal(s.err)
	}
	return s.most
}
