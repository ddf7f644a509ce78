package testwait

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Peer starts the test binary as another process, with an additional variable NAME=value of its
// environment, and waits until it calls Ready. kill ends it with SIGKILL. It lives no longer
// than the test.
func Peer(t testing.TB, variable string) (pid int, kill func()) {
	t.Helper()
	cmd := Command(t, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), variable)
	stdin, stdout := StartPiped(t, cmd)
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		stdin.Close()
	})
	t.Cleanup(kill)
	if line, err := stdout.ReadString('\n'); line != readyLine {
		t.Fatalf("process with %s says %q, %v", variable, line, err)
	}
	return cmd.Process.Pid, kill
}

// StartPiped starts a command, and returns both ends of its conversation. Whoever calls it waits for the command.
func StartPiped(t testing.TB, cmd *exec.Cmd) (stdin io.WriteCloser, stdout *bufio.Reader) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return stdin, bufio.NewReader(out)
}

const readyLine = "ready\n"

// Ready tells the parent of a Peer that it is ready, waits for the parent to end, and ends, too.
func Ready() {
	fmt.Print(readyLine)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
