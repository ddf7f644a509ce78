package vmmc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/internal/testwait"
)

func TestWithoutIdentityThereIsNoWayBeyondThisMachine(t *testing.T) {
	testwait.Bound(t)
	for _, a := range []string{"tcp:0.0.0.0:0", "tcp::0", "tcp:192.0.2.1:7", "tcp:example.com:7"} {
		if n, err := Open(Options{Listen: []string{a}}); !errors.Is(err, ErrAddress) {
			t.Errorf("listens at %s: %v, %v", a, n, err)
		} else if strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("more than a line: %v", err)
		}
		if _, err := openNode(t, Options{}).Import(testContext(t), 1, a); !errors.Is(err, ErrAddress) {
			t.Errorf("imports from %s: %v", a, err)
		}
	}
}

func TestUserOfThisMachineNeedsNoIdentity(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	for _, listen := range []string{socket(t), "tcp:localhost:0"} {
		testwait.Bound(t)
		x := openNode(t, Options{Listen: []string{listen}})
		for id, uid := range []int{os.Geteuid(), os.Geteuid() + 1} {
			memory, err := x.Alloc(10)
			if err == nil {
				_, err = x.Export(uint32(id), memory, Permissions{UIDs: []uint32{uint32(uid)}}, ExportOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		m := openNode(t, Options{})
		if _, err := m.Import(testContext(t), 0, x.Addresses()[0]); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
		if _, err := m.Import(testContext(t), 1, x.Addresses()[0]); !errors.Is(err, ErrNotPermitted) {
			t.Errorf("%s: what another user may import: %v", listen, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "vmmc.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestTokenFileIsForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	var made sync.Map
	var all sync.WaitGroup
	for range 20 { // all get the one that is made first
		all.Go(func() {
			token, err := fileToken(path)
			if err != nil {
				t.Error(err)
			}
			made.Store(token, true)
		})
	}
	all.Wait()
	n := 0
	made.Range(func(k, _ any) bool { n++; return len(k.(string)) >= identity.MinToken })
	if files, err := os.ReadDir(dir); n != 1 || len(files) != 1 || err != nil {
		t.Errorf("%d tokens, in %v, %v", n, files, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := fileToken(path); !errors.Is(err, ErrIdentity) {
		t.Errorf("readable for the group: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Chmod(path, 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := fileToken(link); err == nil {
		t.Error("a symbolic link was followed")
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fileToken(path); !errors.Is(err, ErrIdentity) {
		t.Errorf("short: %v", err)
	}
}

// Whoever made the directory, or the file, first must not hold this user up, nor give it a token.
func TestDirectoryOfTheTokenIsForItsOwnerAlone(t *testing.T) {
	testwait.Bound(t)
	t.Setenv("XDG_RUNTIME_DIR", "")
	for what, spoil := range map[string]func(dir string) error{
		"open to others": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o722)) },
		"a link":         func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"with a FIFO": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), unix.Mkfifo(filepath.Join(dir, "vmmc.token"), 0o600))
		},
	} {
		tmp := t.TempDir()
		t.Setenv("TMPDIR", tmp)
		if err := spoil(filepath.Join(tmp, fmt.Sprintf("pinwheel-%d", os.Geteuid()))); err != nil {
			t.Fatal(err)
		}
		if _, err := fileToken(""); !errors.Is(err, ErrIdentity) {
			t.Errorf("a directory that is %s: %v", what, err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := fileToken(""); err != nil {
		t.Error(err)
	}
}

func TestPeersWithoutTheRightIdentityAreRefused(t *testing.T) {
	stranger := newAuthority(strings.Repeat("stranger", 4))
	certified := func(a *authority, until time.Duration) Options {
		c := a.issue(t, "sender", time.Now().Add(until))
		return Options{Certificate: &c, Authorities: testAuthority.pool}
	}
	withToken := Options{Token: testToken}
	for what, pair := range map[string][2]Options{
		"another token":              {withToken, {Token: strings.ToUpper(testToken)}},
		"a token, not a certificate": {certified(testAuthority, time.Hour), withToken},
		"a certificate, not a token": {withToken, certified(testAuthority, time.Hour)},
		"an expired certificate":     {certified(testAuthority, time.Hour), certified(testAuthority, -time.Minute)},
		"another authority":          {certified(testAuthority, time.Hour), certified(stranger, time.Hour)},
		"a foreign exporter":         {certified(stranger, time.Hour), certified(testAuthority, time.Hour)},
	} {
		t.Run(what, func(t *testing.T) {
			testwait.Bound(t)
			x, m := pair[0], pair[1]
			x.Listen, x.Warn = []string{"tcp:127.0.0.1:0"}, quiet
			exporter := openNode(t, x)
			if _, err := exporter.Export(1, make([]byte, 10), sender, ExportOptions{}); err != nil {
				t.Fatal(err)
			}
			i, err := openNode(t, m).Import(testContext(t), 1, exporter.Addresses()[0])
			if err == nil || !permanent(err) {
				t.Errorf("got %v, %v", i, err)
			}
		})
	}
}

func TestOnlyTLS13IsSpoken(t *testing.T) {
	testwait.Bound(t)
	x := openNode(t, Options{Token: testToken, Listen: []string{"tcp:127.0.0.1:0"}, Warn: quiet})
	_, address, _ := strings.Cut(x.Addresses()[0], ":")
	old := &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	if _, err := tls.Dial("tcp", address, old); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

func TestOtherUsersAreRefusedAtTheSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	testwait.Bound(t)
	warned := make(chan string, 1)
	address := socket(t)
	openNode(t, Options{Listen: []string{address}, Warn: func(m string) { warned <- m }})
	_, path, _ := strings.Cut(address, ":")
	if err := errors.Join(os.Chmod(filepath.Dir(path), 0o711), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with this goroutine
		const nobody = 65534
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 { // of this thread alone
			done <- e
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
			t.Cleanup(func() { unix.Close(fd) })
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "user 65534") {
		t.Errorf("warned %q", m)
	}
}
