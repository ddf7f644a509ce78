package vmwatch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
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
	"pinwheel/vmwatch"
	"pinwheel/vmwatch/watchd"
)

const serviceVar = "VMWATCH_TEST_SERVICE"

func init() {
	// Serves until it is told to end, or is killed.
	vmwatch.Children["service"] = func() {
		ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer end()
		s, l, err := serviceAt(os.Getenv(serviceVar), vmwatch.ServiceOptions{})
		fmt.Println("serves:", err)
		if err == nil {
			fmt.Println("ended:", errors.Join(watchd.Serve(ctx, l, s, func(string) {}), s.Close()))
		}
	}
	// Says how it watches, and at the end of its input whether it notices changes still.
	vmwatch.Children["client"] = func() {
		w, err := vmwatch.Open(vmwatch.Options{Service: os.Getenv(serviceVar)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(strings.ReplaceAll(w.Report().String(), "\n", ";"))
		_, _ = io.Copy(io.Discard, os.Stdin)
		tested, _, err := vmwatch.SelfTest(w, change.Kinds)
		fmt.Println(len(tested) > 10, err)
	}
	// Notices changes, all the time.
	vmwatch.Children["noticing"] = func() {
		w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf", Service: os.Getenv(serviceVar)})
		fmt.Println("watches:", err)
		ends := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(ends)
		}()
		for ended := false; err == nil && !ended; {
			select {
			case <-ends:
				ended = true // with a round that began after all that the test has done
			default:
			}
			_, _, err = vmwatch.SelfTest(w, change.Kinds)
		}
		fmt.Println("noticed all:", err == nil, err)
	}
	// Closes descriptors that are not its own, as a daemon does at its start; those of Go's runtime would end it.
	vmwatch.Children["daemon"] = func() {
		w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf", Service: os.Getenv(serviceVar)})
		if err != nil {
			fmt.Println(err)
			return
		}
		r, free, err := vmwatch.Scratch(4 * mem.PageSize)
		if err == nil {
			_, _, err = w.Watch(r)
		}
		w.Drain(func(mem.Range) {})
		before := w.Generation()
		w.CloseService()
		free()
		noticed := w.Generation() != before
		fmt.Println("noticed:", noticed, err)
	}
	// Tries to do with the links what their owner may.
	vmwatch.Children["detach"] = func() {
		b, err := vmwatch.Borrow(os.Getenv(serviceVar))
		fmt.Println(err, err == nil && len(b.Links) > 1 && b.Refused() == len(b.Links))
	}
}

func serviceAt(path string, o vmwatch.ServiceOptions) (*vmwatch.Service, *unixsocket.Listener, error) {
	s, err := vmwatch.OpenService(o)
	if err != nil {
		return nil, nil, err
	}
	l, err := watchd.Listen(path)
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
func startService(t *testing.T, o vmwatch.ServiceOptions) (*vmwatch.Service, string) {
	t.Helper()
	testwait.Bound(t)
	path := socketPath(t)
	s, l, err := serviceAt(path, o)
	if errors.Is(err, vmwatch.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- watchd.Serve(ctx, l, s, func(string) {}) }()
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
	p.cmd.Dir, p.cmd.Env = "/", append(os.Environ(), vmwatch.ChildVar+"="+name, serviceVar+"="+path)
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

func TestServiceWatchesForOtherUsers(t *testing.T) {
	s, path := startService(t, vmwatch.ServiceOptions{})
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
	w, err := vmwatch.Open(vmwatch.Options{Service: path}) // root, too, has no programs of its own then
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Report(); !r.Service && r.Chosen <= s.Mechanism() {
		t.Errorf("root is watched by %s", r.How())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	vmwatch.Eventually(t, "logs", s.Left, 0)
}

// A thousand with VMWATCH_TEST_CLIENTS=1000.
func TestKilledClientsLeaveNothing(t *testing.T) {
	s, path := startService(t, vmwatch.ServiceOptions{})
	clients, err := strconv.Atoi(os.Getenv("VMWATCH_TEST_CLIENTS"))
	if err != nil {
		clients = 40
	}
	before := vmwatch.Entries(t, "/proc/self/fd")
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
	vmwatch.Eventually(t, "logs", s.Left, 0)
	vmwatch.Eventually(t, "descriptors", func() int { return vmwatch.Entries(t, "/proc/self/fd") }, before)
}

func TestClientsOfAServiceThatEndsNoticeChanges(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(unix.SignalName(how), func(t *testing.T) { clientsNoticeChanges(t, how) })
	}
}

// clientsNoticeChanges has a service ended while its clients change their mappings, and another one take its place.
func clientsNoticeChanges(t *testing.T, how syscall.Signal) {
	testwait.Bound(t)
	vmwatch.Need(t, "bpf")
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
	if err := service.cmd.Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	if said := service.says(); how == syscall.SIGTERM && said != "ended: <nil>" {
		t.Errorf("the service says %q", said)
	}
	_ = service.cmd.Wait()
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
	vmwatch.Need(t, "bpf")
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
func TestProcessThatClosesTheServicesDescriptorsKnowsNothing(t *testing.T) {
	s, path := startService(t, vmwatch.ServiceOptions{})
	for range 20 {
		if said := begin(t, "daemon", path).says(); said != "noticed: true <nil>" {
			t.Fatalf("it says %q", said)
		}
	}
	vmwatch.Eventually(t, "logs", s.Left, 0)
}

func TestUserMayHaveOnlySoManyProcesses(t *testing.T) {
	s, path := startService(t, vmwatch.ServiceOptions{PerUser: 2})
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
	b, err := vmwatch.Borrow(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range append(b.Links, b.Conn) {
		unix.Close(fd)
	}
	one.kill()
	two.kill()
	vmwatch.Eventually(t, "logs but one", s.Left, 2)
	if got := s.Left(); got != 2 { // the log, and its user
		t.Errorf("%d are left, want 2", got)
	}
	unix.Close(b.Log)
	vmwatch.Eventually(t, "logs", s.Left, 0)
	if said := begin(t, "client", path).says(); !strings.Contains(said, served) {
		t.Errorf("a client says %q when there is room", said)
	}
}

// A process can't take another log in the place of the one that it has.
func TestProcessIsWatchedOnce(t *testing.T) {
	s, path := startService(t, vmwatch.ServiceOptions{})
	b, err := vmwatch.Borrow(path)
	if err != nil {
		t.Fatal(err)
	}
	if another, err := vmwatch.Borrow(path); err == nil || !strings.Contains(err.Error(), "watched already") {
		t.Errorf("%v, %v", another, err)
	}
	b.Close()
	vmwatch.Eventually(t, "logs", s.Left, 0)
}

// Whose connection has ended gets no events any more, and each look says so.
func TestLogWithoutAConnectionIsBlind(t *testing.T) {
	_, path := startService(t, vmwatch.ServiceOptions{})
	b, err := vmwatch.Borrow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	look, end, err := b.Look()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	seen, lost := look(0)
	if lost {
		t.Fatal("it is blind at its start")
	}
	if err := unix.Shutdown(b.Conn, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the log is blind", func() (lost bool) { _, lost = look(seen); return lost })
	for range 3 {
		now, lost := look(seen)
		if !lost || now == seen {
			t.Errorf("nothing is lost from %d to %d", seen, now)
		}
		seen = now
	}
}

func TestLinksGiveNoPowerOverThePrograms(t *testing.T) {
	_, path := startService(t, vmwatch.ServiceOptions{})
	witness := begin(t, "noticing", path)
	if said := witness.says(); said != "watches: <nil>" {
		t.Fatal(said)
	}
	if said := begin(t, "detach", path).says(); said != "<nil> true" {
		t.Errorf("a client says %q", said)
	}
	if witness.in.Close(); witness.says() != "noticed all: true <nil>" {
		t.Errorf("another one says %q", witness.lines.Text())
	}
}

func TestServiceRefusesWhatItDoesNotKnow(t *testing.T) {
	s, path := startService(t, vmwatch.ServiceOptions{})
	before := vmwatch.Entries(t, "/proc/self/fd")
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
		{"another version", strings.Replace(vmwatch.ServiceRequest, "1", "0", 1), []string{"/proc/self/pagemap"}, "another protocol"},
		{"too much", strings.Repeat(vmwatch.ServiceRequest, 100), []string{"/proc/self/pagemap"}, "another protocol"},
		{"no descriptor", vmwatch.ServiceRequest, nil, "no page table"},
		{"a file", vmwatch.ServiceRequest, []string{"/etc/passwd"}, "no page table"},
		{"another file of the process", vmwatch.ServiceRequest, []string{"/proc/self/maps"}, "no page table"},
		{"a directory", vmwatch.ServiceRequest, []string{"/proc/self"}, "no page table"},
		{"a hundred descriptors", vmwatch.ServiceRequest, slices.Repeat([]string{"/etc/passwd"}, 100), "no page table"},
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
			if err != nil || oobn != 0 || n < 1 || vmwatch.Mechanism(answer[0]) != vmwatch.None || !strings.Contains(string(answer[:n]), c.want) {
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
	vmwatch.Eventually(t, "logs", s.Left, 0)
	vmwatch.Eventually(t, "descriptors", func() int { return vmwatch.Entries(t, "/proc/self/fd") }, before)
	if said := begin(t, "client", path).says(); !strings.Contains(said, served) {
		t.Errorf("a client says %q", said)
	}
}
