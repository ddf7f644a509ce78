package vmwatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/internal/testwait"
	"pinwheel/internal/unixsocket"
	"pinwheel/mem"
)

const serviceVar = "VMWATCH_TEST_SERVICE"

func init() {
	// Serves until it is killed.
	children["service"] = func() {
		s, l, err := serviceAt(os.Getenv(serviceVar), ServiceOptions{})
		fmt.Println("serves:", err)
		if err == nil {
			fmt.Println(s.Serve(context.Background(), l))
		}
	}
	// Says how it watches, and at the end of its input whether it notices changes still.
	children["client"] = func() {
		w, err := Open(Options{Service: os.Getenv(serviceVar)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(strings.ReplaceAll(w.Report().String(), "\n", ";"))
		_, _ = io.Copy(io.Discard, os.Stdin)
		tested, _, err := selfTest(w, change.Kinds)
		fmt.Println(len(tested) > 10, err)
	}
	// Notices changes, all the time.
	children["noticing"] = func() {
		w, err := Open(Options{Mechanism: "bpf", Service: os.Getenv(serviceVar)})
		fmt.Println("watches:", err)
		ends := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(ends)
		}()
		for rounds := 0; err == nil; rounds++ {
			_, _, err = selfTest(w, change.Kinds)
			select {
			case <-ends:
				fmt.Println("noticed all:", rounds > 0, err)
				return
			default:
			}
		}
		fmt.Println("failed:", err)
	}
	// Closes the service's descriptors, as a daemon does at its start.
	children["daemon"] = func() {
		w, err := Open(Options{Mechanism: "bpf", Service: os.Getenv(serviceVar)})
		if err != nil {
			fmt.Println(err)
			return
		}
		r, free, err := scratch(4 * mem.PageSize)
		if err == nil {
			_, _, err = w.Watch(r)
		}
		w.Drain(func(mem.Range) {})
		before := w.Generation()
		_ = unix.CloseRange(3, ^uint(0), 0)
		free()
		noticed := w.Generation() != before
		fmt.Println("noticed:", noticed, err)
	}
	// Tries to do with the links what their owner may.
	children["detach"] = func() {
		var refused int
		conn, fds, err := rawClient(os.Getenv(serviceVar))
		for _, link := range fds[min(1, len(fds)):] {
			detach := struct{ link uint32 }{uint32(link)}
			_, err1 := bpfCall("LINK_DETACH", unix.BPF_LINK_DETACH, &detach)
			update := struct{ link, program, flags, old uint32 }{link: uint32(link), program: uint32(link)}
			_, err2 := bpfCall("LINK_UPDATE", unix.BPF_LINK_UPDATE, &update)
			if err1 != nil && err2 != nil {
				refused++
			}
		}
		fmt.Println(err, conn > 0, len(fds) > 2 && refused == len(fds)-1)
	}
}

// rawClient enrols this process, and returns what the service gives.
func rawClient(path string) (conn int, fds []int, err error) {
	pages, err := openPages()
	if err != nil {
		return -1, nil, err
	}
	defer pages.close()
	if conn, err = dialService(path); err != nil {
		return -1, nil, err
	}
	if err = sendTo(conn, serviceRequest, int(pages.pagemap.Fd())); err != nil {
		return conn, nil, err
	}
	b, oob := make([]byte, 256), make([]byte, 1024)
	n, oobn, err := receiveFrom(conn, b, oob)
	if fds = descriptors(oob[:max(oobn, 0)]); err == nil && len(fds) == 0 {
		err = fmt.Errorf("it says %q", b[:n])
	}
	return conn, fds, err
}

func serviceAt(path string, o ServiceOptions) (*Service, *unixsocket.Listener, error) {
	s, err := OpenService(o)
	if err != nil {
		return nil, nil, err
	}
	l, err := unixsocket.Listen("unixpacket", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	return s, l, err
}

// socketPath returns a path that every user can reach.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pw watch ") // with spaces
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "watch.sock")
}

// startService serves in this process until the test ends.
func startService(t *testing.T, o ServiceOptions) (*Service, string) {
	t.Helper()
	testwait.Bound(t)
	path := socketPath(t)
	s, l, err := serviceAt(path, o)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := errors.Join(testwait.Receive(t, "the end of the service", served), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// program is a child process that says one line after the other.
type program struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Scanner
}

func (p *program) says() string {
	p.lines.Scan()
	return p.lines.Text()
}

// begin starts one of children as another user; as root if it is the service.
func begin(t *testing.T, name, path string) *program {
	t.Helper()
	p := &program{cmd: testwait.Command(t, "/proc/self/exe")}
	p.cmd.Dir, p.cmd.Env = "/", append(os.Environ(), childVar+"="+name, serviceVar+"="+path)
	if name != "service" && os.Geteuid() == 0 {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	in, err := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.lines = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

const served = "by the watch service"

// left counts what a service has of its clients: users, connections, logs, and entries of the programs' map.
func (s *Service) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reclaim()
	n := s.total + len(s.users)
	var space uint64
	for logs := s.programs.coll.Maps["logs"].Iterate(); logs.Next(&space, new(uint32)); {
		n++
	}
	return n
}

func TestServiceWatchesForOtherUsers(t *testing.T) {
	s, path := startService(t, ServiceOptions{})
	one, two := begin(t, "client", path), begin(t, "client", path)
	for _, p := range []*program{one, two} {
		if said := p.says(); !strings.Contains(said, s.Mechanism().String()+", "+served) {
			t.Fatalf("a client says %q", said)
		}
	}
	for _, p := range []*program{one, two} {
		if p.in.Close(); p.says() != "true <nil>" {
			t.Errorf("a client says %q", p.lines.Text())
		}
	}
	w, err := Open(Options{Service: path}) // root, too, has no programs of its own then
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Report(); !r.Service && r.Chosen <= s.Mechanism() {
		t.Errorf("root is watched by %s", r.How())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "logs", s.left, 0)
}

// A thousand with VMWATCH_TEST_CLIENTS=1000.
func TestKilledClientsLeaveNothing(t *testing.T) {
	s, path := startService(t, ServiceOptions{})
	clients, err := strconv.Atoi(os.Getenv("VMWATCH_TEST_CLIENTS"))
	if err != nil {
		clients = 40
	}
	before := entries(t, "/proc/self/fd")
	for done := 0; done < clients; done += 20 {
		var all sync.WaitGroup
		for range 20 {
			p := begin(t, "client", path)
			all.Go(func() {
				if said := p.says(); !strings.Contains(said, served) {
					t.Errorf("a client says %q", said)
				}
				p.kill()
				p.in.Close()
			})
		}
		all.Wait()
	}
	eventually(t, "logs", s.left, 0)
	eventually(t, "descriptors", func() int { return entries(t, "/proc/self/fd") }, before)
}

func TestClientsOfAKilledServiceNoticeChanges(t *testing.T) {
	testwait.Bound(t)
	need(t, "bpf")
	path := socketPath(t)
	service := begin(t, "service", path)
	if said := service.says(); said != "serves: <nil>" {
		t.Fatal(said)
	}
	clients := []*program{begin(t, "noticing", path), begin(t, "noticing", path)}
	for _, p := range clients {
		if said := p.says(); said != "watches: <nil>" {
			t.Fatal(said)
		}
	}
	service.kill()
	next := begin(t, "service", path) // takes its place
	if said := next.says(); said != "serves: <nil>" {
		t.Fatal(said)
	}
	late := begin(t, "client", path)
	if said := late.says(); !strings.Contains(said, served) {
		t.Errorf("a client of the next service says %q", said)
	}
	for _, p := range clients {
		if p.in.Close(); p.says() != "noticed all: true <nil>" {
			t.Errorf("a client says %q", p.lines.Text())
		}
	}
}

func TestStoppedServiceIsDoneWithout(t *testing.T) {
	testwait.Bound(t)
	need(t, "bpf")
	path := socketPath(t)
	service := begin(t, "service", path)
	if said := service.says(); said != "serves: <nil>" {
		t.Fatal(said)
	}
	if err := service.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	said := begin(t, "client", path).says()
	if !strings.Contains(said, "no answer in") || strings.Contains(said, served) {
		t.Errorf("a client says %q", said)
	}
}

// Whoever closes descriptors that are not his must not believe in registrations that nobody watches.
func TestProcessThatClosesAllDescriptorsKnowsNothing(t *testing.T) {
	s, path := startService(t, ServiceOptions{})
	for range 20 {
		if said := begin(t, "daemon", path).says(); said != "noticed: true <nil>" {
			t.Fatalf("it says %q", said)
		}
	}
	eventually(t, "logs", s.left, 0)
}

func TestUserMayHaveOnlySoManyProcesses(t *testing.T) {
	s, path := startService(t, ServiceOptions{PerUser: 2})
	one, two := begin(t, "client", path), begin(t, "client", path)
	for _, p := range []*program{one, two} {
		if said := p.says(); !strings.Contains(said, served) {
			t.Fatalf("a client says %q", said)
		}
	}
	if said := begin(t, "client", path).says(); strings.Contains(said, served) || !strings.Contains(said, "as many as a user may have") {
		t.Errorf("a third client says %q", said)
	}
	// Another user is served. What it keeps mapped after its connection has ended is counted still.
	conn, fds, err := rawClient(path)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(fds[1:])
	unix.Close(conn)
	one.kill()
	two.kill()
	eventually(t, "logs but one", s.left, 2)
	if got := s.left(); got != 2 { // the log, and its user
		t.Errorf("%d are left, want 2", got)
	}
	unix.Close(fds[0])
	eventually(t, "logs", s.left, 0)
	if said := begin(t, "client", path).says(); !strings.Contains(said, served) {
		t.Errorf("a client says %q when there is room", said)
	}
}

// A process can't take another log in the place of the one that it has.
func TestProcessIsWatchedOnce(t *testing.T) {
	s, path := startService(t, ServiceOptions{})
	conn, fds, err := rawClient(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, more, err := rawClient(path); err == nil || !strings.Contains(err.Error(), "watched already") {
		t.Errorf("%d descriptors, %v", len(more), err)
	} else {
		unix.Close(again)
	}
	closeAll(append(fds, conn))
	eventually(t, "logs", s.left, 0)
}

// Whose connection has ended gets no events any more, and each look says so.
func TestLogWithoutAConnectionIsBlind(t *testing.T) {
	_, path := startService(t, ServiceOptions{})
	conn, fds, err := rawClient(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(fds)
	l, err := mapLog(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unmapShared(l.shared)
	seen := l.first()
	unix.Close(conn)
	testwait.Until(t, "the generation moves", func() bool { return l.first() != seen })
	for range 3 {
		if next, overrun := l.drain(seen, func(mem.Range) {}); !overrun || next == seen {
			t.Errorf("nothing is lost from %d to %d", seen, next)
		} else {
			seen = next
		}
	}
}

func TestLinksGiveNoPowerOverThePrograms(t *testing.T) {
	_, path := startService(t, ServiceOptions{})
	witness := begin(t, "noticing", path)
	if said := witness.says(); said != "watches: <nil>" {
		t.Fatal(said)
	}
	if said := begin(t, "detach", path).says(); said != "<nil> true true" {
		t.Errorf("a client says %q", said)
	}
	if witness.in.Close(); witness.says() != "noticed all: true <nil>" {
		t.Errorf("another one says %q", witness.lines.Text())
	}
}

func TestServiceRefusesWhatItDoesNotKnow(t *testing.T) {
	s, path := startService(t, ServiceOptions{})
	before := entries(t, "/proc/self/fd")
	file := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		name, request string
		files         []string
		want          string
	}{
		{"nothing but a letter", "x", nil, "another protocol"},
		{"another version", strings.Replace(serviceRequest, "1", "0", 1), []string{"/proc/self/pagemap"}, "another protocol"},
		{"too much", strings.Repeat(serviceRequest, 100), []string{"/proc/self/pagemap"}, "another protocol"},
		{"no descriptor", serviceRequest, nil, "no page table"},
		{"a file", serviceRequest, []string{"/etc/passwd"}, "no page table"},
		{"another file of the process", serviceRequest, []string{"/proc/self/maps"}, "no page table"},
		{"a directory", serviceRequest, []string{"/proc/self"}, "no page table"},
		{"a hundred descriptors", serviceRequest, slicesRepeat("/etc/passwd", 100), "no page table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: path})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var fds []int
			for _, name := range c.files {
				f := file(name)
				defer f.Close()
				fds = append(fds, int(f.Fd()))
			}
			var rights []byte
			if len(fds) > 0 {
				rights = unix.UnixRights(fds...)
			}
			if _, _, err := conn.WriteMsgUnix([]byte(c.request), rights, nil); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, 256)
			n, oobn, _, _, err := conn.ReadMsgUnix(answer, make([]byte, 1024))
			if err != nil || oobn != 0 || n < 1 || Mechanism(answer[0]) != None || !strings.Contains(string(answer[:n]), c.want) {
				t.Errorf("answer %q with %d bytes of descriptors, %v; want %q", answer[:max(n, 0)], oobn, err, c.want)
			}
		})
	}
	silent, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := silent.Read(make([]byte, 256)); n == 0 && err == nil {
		t.Error("one that says nothing gets nothing")
	}
	silent.Close()
	eventually(t, "logs", s.left, 0)
	eventually(t, "descriptors", func() int { return entries(t, "/proc/self/fd") }, before)
	if said := begin(t, "client", path).says(); !strings.Contains(said, served) {
		t.Errorf("a client says %q", said)
	}
}

func slicesRepeat(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

