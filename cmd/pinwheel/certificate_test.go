package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/comm/peer/peertest"
	"pinwheel/internal/testwait"
)

// Both ends have the same certificate, and go by its name; who has another one is not let in.
func TestFilesGoBetweenEndsWithCertificates(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	flags := func() []string {
		e := peertest.Certified(t)
		return []string{"--certificate", e.Certificate, "--key", e.Key, "--authorities", e.Authorities, "--peer", e.Peers[0]}
	}
	ours := flags()
	content := contents(t, 5<<20+1)
	write(t, filepath.Join(there, "f"), content)
	s := startServer(t, there, "127.0.0.1:0", append(ours, "--allow-write")...)
	port := s.address[strings.LastIndex(s.address, ":"):] // with the slash at its end
	to := peertest.Name + port
	line := func(words string, identity []string) string {
		return words + " --from tcp:" + peertest.Name + ":0 " + strings.Join(identity, " ")
	}
	for _, words := range []string{"get " + to + "f " + here, "put " + here + "/f " + to + "g", "ls " + to} {
		if _, stderr, state := pinwheel(t, line(words, ours)); !state.Success() || stderr != "" {
			t.Errorf("%s: %v, %q", words, state, stderr)
		}
	}
	holds(t, filepath.Join(here, "f"), content)
	holds(t, filepath.Join(there, "g"), content)
	for what, identity := range map[string][]string{
		"another certificate": flags(), "another name": append(ours[:6:6], "--peer", "somebody"), "none": nil,
	} {
		_, stderr, state := pinwheel(t, line("get --timeout 1s "+to+"f "+filepath.Join(here, "no"), identity))
		if state.ExitCode() != 1 || !strings.Contains(stderr, "pinwheel: ") {
			t.Errorf("%s: %v, %q", what, state, stderr)
		}
	}
	if have := names(t, here); len(have) != 1 {
		t.Errorf("left %q", have)
	}
}
