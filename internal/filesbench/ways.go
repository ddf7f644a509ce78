package filesbench

import (
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"pinwheel/files/pipe"
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

// way is a way of copying.
type way struct {
	what, name string
	needs      []string // commands
	device     bool     // needs an RDMA device
	copy       func(s *stage, dest string) (cpu, wall time.Duration, err error)
}

// missing says what a way lacks here.
func (w *way) missing() string {
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

// ways returns all, in the order of the tables.
func ways() (all []way) {
	for _, what := range []string{File, Tree} {
		own := func(name, listen string, serve, get []string) way {
			return way{what: what, name: name, copy: func(s *stage, dest string) (time.Duration, time.Duration, error) {
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
				way{what: what, name: plain, copy: plainSendfile},
				way{what: what, name: nginx, needs: []string{"nginx", "curl"}, copy: byNginx("http")},
				way{what: what, name: nginxTLS, needs: []string{"nginx", "curl"}, copy: byNginx("https")})
		}
		all = append(all, way{what: what, name: rsync, needs: []string{"rsync"}, copy: byRsync(what)})
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
