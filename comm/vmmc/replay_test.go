package vmmc

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"pinwheel/internal/testwait"
)

// recorder stands between an importer and an exporter, and keeps what the importer says.
type recorder struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	said bytes.Buffer
}

func (r *recorder) serve() {
	for {
		a, err := r.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", r.to)
		if err != nil {
			a.Close()
			continue
		}
		go func() { _, _ = io.Copy(io.MultiWriter(r, b), a); b.Close() }()
		go func() { _, _ = io.Copy(a, b); a.Close() }()
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.Write(b)
}

// Whoever has heard a whole connection and says the same again is refused: nothing arrives twice.
func TestConnectionThatIsReplayedIsRefused(t *testing.T) {
	for _, tr := range transports[2:4] { // those over TLS
		t.Run(tr.name, func(t *testing.T) {
			warned := make(chan string, 9)
			w := tr.begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
			_, to, _ := strings.Cut(w.address, ":")
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			r := &recorder{l: l, to: to}
			go r.serve()
			memory := w.memory(t, 100)
			e := w.export(t, 1, memory, sender, ExportOptions{})
			e.Block()
			i, err := w.importer.Import(testContext(t), 1, "tcp:"+l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			send(t, i, "once", 0, SendOptions{Notify: true})
			wait(t, e)
			r.mu.Lock()
			said := bytes.Clone(r.said.Bytes())
			r.mu.Unlock()
			clear(memory)
			c, err := net.Dial("tcp", to)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(said); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !closedByPeer(err) {
				t.Error(err)
			}
			if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "refused") {
				t.Errorf("warned %q", m)
			}
			if s := w.exporter.Stats(); s.Exports[0].Importers != 1 || s.Total.Notifications != 1 || string(memory[:4]) == "once" {
				t.Errorf("it had an effect: %+v", s)
			}
			send(t, i, "fine", 50, SendOptions{Notify: true}) // the real one is undisturbed
			wait(t, e)
		})
	}
}
