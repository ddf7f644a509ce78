package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/rdmatest"
)

func TestTransportRDMAWithoutADeviceIsOneLine(t *testing.T) {
	if rdma.Probe() == nil {
		t.Setenv("SYSFS_PATH", "/nowhere") // hides a device of softverbs
	}
	if rdma.Probe() == nil {
		t.Skip("this machine has a device")
	}
	testwait.Bound(t)
	for _, line := range []string{
		"serve . --listen 127.0.0.1:0 --transport rdma", "get --transport rdma 127.0.0.1:7/f .",
		"put --transport rdma /dev/null 127.0.0.1:7/f", "ls --transport rdma 127.0.0.1:7",
	} {
		_, stderr, state := pinwheel(t, line)
		if state.ExitCode() != 1 {
			t.Errorf("%q: %v", line, state)
		}
		oneLine(t, stderr, "--transport rdma: ")
		if !strings.Contains(stderr, "see pinwheel doctor") {
			t.Errorf("%q says %q", line, stderr)
		}
	}
}

// Whichever end insists on RDMA and whichever lacks it: one line, and no bytes by another way.
func TestOneEndInsistsOnRDMA(t *testing.T) {
	rdmatest.Need(t)
	testwait.Bound(t)
	t.Setenv("XDG_RUNTIME_DIR", testwait.ShortDir(t))
	for _, c := range []struct{ server, client, says string }{
		{"rdma", "tcp", "the server insists on RDMA: files: no RDMA: this end has no device"},
		{"tcp", "rdma", "files: no RDMA: the server has no device"},
	} {
		there, here := t.TempDir(), t.TempDir()
		write(t, filepath.Join(there, "f"), contents(t, 5<<20))
		s := startServer(t, there, "127.0.0.1:0", "--transport", c.server, "--allow-write")
		for _, line := range []string{"get " + s.address + "f " + here, "put " + there + "/f " + s.address + "g"} {
			_, stderr, state := pinwheel(t, line+" --transport "+c.client)
			if state.ExitCode() != 1 {
				t.Errorf("%q: %v", line, state)
			}
			oneLine(t, stderr, c.says)
			oneLine(t, stderr, strings.Trim(strings.TrimPrefix(s.address, "tcp:"), "/")+": ")
		}
		if len(names(t, here)) > 0 || len(names(t, there)) != 1 {
			t.Errorf("left %q and %q", names(t, here), names(t, there))
		}
	}
}

// A client that takes what there is goes by RDMA to a server that insists on it.
func TestServerThatInsistsSendsNothingByTCP(t *testing.T) {
	rdmatest.Need(t)
	testwait.Bound(t)
	t.Setenv("XDG_RUNTIME_DIR", testwait.ShortDir(t))
	there, here := t.TempDir(), t.TempDir()
	content := contents(t, 20<<20)
	write(t, filepath.Join(there, "f"), content)
	write(t, filepath.Join(there, "small"), content[:1000])
	s := startServer(t, there, "127.0.0.1:0", "--transport", "rdma", "--allow-write")
	for _, line := range []string{
		"get -r " + s.address + " " + filepath.Join(here, "all"), "put -r " + filepath.Join(here, "all") + " " + s.address + "back",
	} {
		if _, stderr, state := pinwheel(t, line); !state.Success() || stderr != "" {
			t.Errorf("%s: %v, %q", line, state, stderr)
		}
	}
	holds(t, filepath.Join(there, "back/f"), content)
	holds(t, filepath.Join(there, "back/small"), content[:1000])
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var st struct {
		RDMA   int64 `json:"bytes_rdma"`
		Inline int64 `json:"bytes_inline"`
		Sent   int64 `json:"bytes_sent"`
	}
	if line, err := s.out.ReadBytes('\n'); err != nil || json.Unmarshal(line, &st) != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if st.RDMA != 20<<20 || st.Inline != 1000 || st.Sent != st.RDMA+st.Inline {
		t.Errorf("%+v", st)
	}
}

// Memory is shared by descriptors. Where there are too few, nothing goes another way.
func TestWhoInsistsOnSharedMemoryHasNothingElse(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	content := contents(t, 1<<20+1)
	write(t, filepath.Join(there, "f"), content)
	s := startServer(t, there, "unix:"+filepath.Join(socketDir(t), "s"))
	got := filepath.Join(here, "f")
	for _, files := range []int{8, 12, 14, 16, 18, 20, 22, 24, 64} {
		limited := fmt.Sprintf(`ulimit -n %d; exec "$@"`, files)
		cmd := testwait.Command(t, "sh", "-c", limited, "sh",
			binary, "get", "--json", "--transport", "shm", s.address+"f", got)
		out, err := cmd.Output()
		if err != nil && files < 64 {
			if _, err := os.Stat(got); err == nil {
				t.Errorf("with %d files there is one, but: %s", files, out)
			}
			continue
		}
		var r struct{ Transport string }
		if err := errors.Join(err, json.Unmarshal(out, &r)); err != nil || r.Transport != "shm" {
			t.Errorf("with %d files: %s, %v", files, out, err)
		}
		holds(t, got, content)
		if err := os.Remove(got); err != nil {
			t.Fatal(err)
		}
	}
}
