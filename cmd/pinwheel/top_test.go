package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/node"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// joined makes the test a rank of a job of its own, which has published a state, and returns the job's ID.
func joined(t *testing.T) string {
	t.Helper()
	job := fmt.Sprintf("test-%d", os.Getpid())
	m, err := node.Join(node.Options{Job: job, Rank: 3})
	if err != nil {
		t.Skipf("processes of a job can't find each other here: %v", err)
	}
	t.Cleanup(func() { m.Close() })
	m.Publish(node.State{PinnedBytes: 5 << 20, PeakBytes: 6 << 20, Hits: 12345, Late: 7})
	return job
}

func TestTopShowsAJob(t *testing.T) {
	job := joined(t)
	stdout, stderr, state := pinwheel(t, "top --once --job "+job)
	if !state.Success() || stderr != "" || !strings.Contains(stdout, "\njob "+job+": 1 rank, 5.0 MiB pinned\n") ||
		!strings.Contains(stdout, " 6.0 MiB ") || !strings.Contains(stdout, " 12345 ") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	if again, _, state := pinwheel(t, "top --job "+job); !state.Success() || strings.Count(again, "\n") != 4 { // it is no terminal
		t.Errorf("without --once: %v, %q", state, again)
	}
	stdout, stderr, state = pinwheel(t, "top --json --job "+job)
	var look struct {
		Jobs []struct {
			Job   string
			Ranks []struct {
				Rank, PID int
				Late      int `json:"late_uses"`
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &look); err != nil || !state.Success() || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("%v, %v, %q, %q", state, err, stdout, stderr)
	}
	if j := look.Jobs; len(j) != 1 || j[0].Job != job || len(j[0].Ranks) != 1 || j[0].Ranks[0].Rank != 3 || j[0].Ranks[0].PID != os.Getpid() || j[0].Ranks[0].Late != 7 {
		t.Errorf("%+v", look)
	}
}

// top ends with the job that it watches.
func TestTopGoesOnUntilTheJobHasEnded(t *testing.T) {
	job := fmt.Sprintf("test-ends-%d", os.Getpid())
	m, err := node.Join(node.Options{Job: job, Rank: 0})
	if err != nil {
		t.Skip(err)
	}
	defer m.Close()
	m.Publish(node.State{})
	cmd := testwait.Command(t, binary, "top", "--json", "--interval", "100ms", "--job", job)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(out)
	for range 3 {
		var look map[string]any
		if err := lines.Decode(&look); err != nil {
			t.Fatal(err)
		}
	}
	m.Close()
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v after %q", err, rest)
	}
}

func TestThereIsNothingToSee(t *testing.T) {
	_, stderr, state := pinwheel(t, "top --job no-such-job")
	if state.ExitCode() != 1 {
		t.Errorf("%v", state)
	}
	oneLine(t, stderr, "no-such-job: there is no such job on this node")

	// Others may run jobs here; in a network namespace of its own, there are none.
	cmd := testwait.Command(t, binary, "top")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Skipf("no network namespace: %v", err)
	}
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", cmd.ProcessState)
	}
	oneLine(t, errs.String(), "has registered memory under Pinwheel (yet)")
}

func TestMetricsAreWrittenOnce(t *testing.T) {
	job := joined(t)
	want := regexp.MustCompile(fmt.Sprintf(`(?m)^pinwheel_pinned_bytes\{job_id="%s",manager="\d+",pid="%d",rank="3"\} 5\.24288e\+06$`, job, os.Getpid()))
	if stdout, stderr, state := pinwheel(t, "metrics"); !state.Success() || stderr != "" || !want.MatchString(stdout) {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	path := filepath.Join(t.TempDir(), "pinwheel.prom")
	if stdout, stderr, state := pinwheel(t, "metrics --once --textfile "+path); !state.Success() || stdout+stderr != "" {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	for _, once := range []string{"", "--once "} {
		_, stderr, state := pinwheel(t, "metrics "+once+"--textfile /dev/null/x.prom")
		if state.ExitCode() != 1 {
			t.Errorf("%v", state)
		}
		oneLine(t, stderr, "/dev/null/x.prom: not a directory")
	}
	if text, err := os.ReadFile(path); err != nil || !want.Match(text) {
		t.Errorf("%q, %v", text, err)
	}
}

// A signal ends what goes on for ever, and nothing is left.
func TestSignalsEndTheExporter(t *testing.T) {
	commandtest.NotIgnored(t, unix.SIGINT)
	dir := t.TempDir()
	for _, args := range [][]string{
		{"--textfile", filepath.Join(dir, "pinwheel.prom")},
		{"--listen", "unix:" + filepath.Join(dir, "socket")},
	} {
		for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
			commandtest.EndsBy(t, s, func() *exec.Cmd {
				cmd := testwait.Command(t, binary, append([]string{"metrics"}, args...)...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				testwait.Until(t, "there is a file or a socket", func() bool {
					left, _ := filepath.Glob(dir + "/*")
					return len(left) == 1
				})
				return cmd
			})
			if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
				t.Errorf("%q left %q", args, left)
			}
		}
	}
}

func TestMetricsOverAPort(t *testing.T) {
	job := joined(t)
	l, err := net.Listen("tcp", testwait.Loopback()+":0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	cmd := testwait.Command(t, binary, "metrics", "--listen", address)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	_ = cmd.Run() // it is taken
	oneLine(t, errs.String(), "address already in use")
	l.Close()
	cmd = testwait.Command(t, binary, "metrics", "--listen", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var body []byte
	testwait.Until(t, "an answer", func() bool {
		r, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		body, err = io.ReadAll(r.Body)
		return err == nil && r.StatusCode == 200
	})
	if !strings.Contains(string(body), job) {
		t.Errorf("no %s in %q", job, body)
	}
}
