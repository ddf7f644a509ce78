package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

// unlimited is an end that may pin what its user may.
const unlimited = -1

// underMemlock has a command run under ulimit -l, and without CAP_IPC_LOCK, which lets a process pin all it likes.
func underMemlock(t *testing.T, cmd *exec.Cmd, kib int) {
	t.Helper()
	if kib == unlimited {
		return
	}
	script := `ulimit -l "$0" && exec "$@"`
	if os.Geteuid() == 0 {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("needs setpriv(1) to give up CAP_IPC_LOCK")
		}
		script = `ulimit -l "$0" && exec setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock "$@"`
	}
	cmd.Args = append([]string{"sh", "-c", script, fmt.Sprint(kib), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// Whatever either end may pin, files arrive whole. Only the end that is limited counts here: the other one is root, who
// may pin what it likes; another user shares the limit between both, which then go by RDMA or not.
func TestFilesUnderALimitOfPinnedMemory(t *testing.T) {
	rdmatest.Need(t)
	content := contents(t, 8<<20+1)
	for _, c := range []struct {
		server, client int  // KiB
		rdma           bool // what is left is enough for it
	}{
		{1024, unlimited, true}, {64, unlimited, false}, {0, unlimited, false},
		{unlimited, 8192, true}, {unlimited, 1024, false}, {unlimited, 64, false}, {unlimited, 0, false},
		{1024, 1024, false}, {0, 0, false},
	} {
		t.Run(fmt.Sprintf("server %d, client %d", c.server, c.client), func(t *testing.T) {
			testwait.Bound(t)
			t.Setenv("XDG_RUNTIME_DIR", testwait.ShortDir(t))
			there, here := t.TempDir(), t.TempDir()
			write(t, filepath.Join(there, "f"), content)
			for i := range 5 {
				write(t, filepath.Join(there, fmt.Sprint(i)), content[:1000*i])
			}
			cmd := serverCommand(t, there, "127.0.0.1:0", "--allow-write")
			underMemlock(t, cmd, c.server)
			s := runServer(t, there, cmd)
			run := func(args ...string) {
				t.Helper()
				if c.rdma && os.Geteuid() == 0 && args[0] == "get" { // what is put needs more room at the server
					args = append(args, "--transport", "rdma")
				}
				cmd := testwait.Command(t, binary, append(args, "--json")...)
				underMemlock(t, cmd, c.client)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				out, err := cmd.Output()
				var r copied
				if err == nil {
					err = json.Unmarshal(out, &r)
				}
				if err != nil || r.Failed > 0 || r.Retries > 0 {
					t.Errorf("%q: %s, %v, %s", args, out, err, errs.String())
				}
			}
			run("get", s.address+"f", here)
			holds(t, filepath.Join(here, "f"), content)
			run("get", "-r", s.address, filepath.Join(here, "all"))
			run("put", "-r", filepath.Join(here, "all"), s.address+"back")
			holds(t, filepath.Join(there, "back/f"), content)
			for i := range 5 {
				holds(t, filepath.Join(there, "back", fmt.Sprint(i)), content[:1000*i])
			}
			if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			var st struct {
				BytesRDMA   int64 `json:"bytes_rdma"`
				PinnedBytes int64 `json:"pinned_bytes"`
				PeakBytes   int64 `json:"peak_bytes"`
			}
			if line, err := s.out.ReadBytes('\n'); err != nil || json.Unmarshal(line, &st) != nil {
				t.Fatalf("%q, %v", line, err)
			}
			if limit := int64(c.server) << 10; st.PinnedBytes != 0 || limit >= 0 && st.PeakBytes > limit {
				t.Errorf("%+v", st)
			}
			if os.Geteuid() == 0 && (st.BytesRDMA > 0) != c.rdma {
				t.Errorf("by RDMA: %+v", st)
			}
		})
	}
}
