package filesbench

import (
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"pinwheel/comm/files/pipe"
	"pinwheel/verbs/rdma"
)

// Names of ways that Claims compares.
const (
	oursShared   = "pinwheel, shared memory"
	oursSendfile = "pinwheel, TCP with sendfile"
	oursTLS      = "pinwheel, TLS"
	oursRDMA     = "pinwheel, RDMA, " // and the strategy
	plain        = "plain sendfile(2)"
	nginx        = "nginx"
	nginxTLS     = "nginx, TLS"
	rsync        = "rsync"
)

// Way is a way of copying.
type Way struct {
	What, Name string   // What is File or Tree
	needs      []string // commands
	device     bool     // needs an RDMA device
	copy       func(s *stage, dest string) (cpu, wall time.Duration, err error)
}

// Missing says what a way lacks here.
func (w *Way) Missing() string {
	if w.device {
		if err := rdma.Probe(); err != nil {
			return "no RDMA device can be used: pinwheel doctor says why"
		}
	}
	for _, n := range w.needs {
		if _, err := exec.LookPath(n); err != nil {
			return n + " is not installed (make install-bench-files)"
		}
	}
	return ""
}

// Ways returns all, in the order of the tables.
func Ways() (all []Way) {
	for _, what := range []string{File, Tree} {
		own := func(name, listen string, serve, get []string) Way {
			return Way{What: what, Name: name, copy: func(s *stage, dest string) (time.Duration, time.Duration, error) {
				return s.ours(what, strings.ReplaceAll(listen, "DIR", s.dir), serve, get, dest)
			}}
		}
		tcp := []string{"--transport", "tcp"}
		all = append(all,
			own(oursShared, "unix:DIR/s", nil, nil),
			own(oursSendfile, "127.0.0.1:0", append(tcp, "--trusted-network"), []string{"--trusted-network"}),
			own(oursTLS, "127.0.0.1:0", tcp, nil))
		if what == File {
			for _, strategy := range pipe.Strategies() {
				by := []string{"--transport", "rdma"}
				w := own(oursRDMA+strategy.Name, "127.0.0.1:0", append(by, "--strategy", strategy.Name), by)
				w.device = true
				all = append(all, w)
			}
			all = append(all,
				Way{What: what, Name: plain, copy: plainSendfile},
				Way{What: what, Name: nginx, needs: []string{"nginx", "curl"}, copy: byNginx("http")},
				Way{What: what, Name: nginxTLS, needs: []string{"nginx", "curl"}, copy: byNginx("https")})
		}
		all = append(all, Way{What: what, Name: rsync, needs: []string{"rsync"}, copy: byRsync(what)})
	}
	return all
}

// sourceOf is what of the source is copied.
func (s *stage) sourceOf(what string) string {
	if what == Tree {
		return filepath.Join(s.source, treeName)
	}
	return filepath.Join(s.source, fileName)
}
