package files

import (
	"os"
	"slices"
	"testing"
)

// told returns what the server tells about itself.
func (w *world) told() (info ServerInfo, found bool) {
	w.t.Helper()
	all, err := Servers(testContext(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s ServerInfo) bool { return s.Dir == w.dir })
	if i < 0 {
		return info, false
	}
	return all[i], true
}

func TestServersTellWhatTheyDo(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	w.write("f", random(1000))
	c := w.client()
	if _, err := open(t, c, "f").ReadAt(testContext(t), make([]byte, 1000), 0); err != nil {
		t.Fatal(err)
	}
	info, found := w.told()
	if !found || info.Error != "" || info.Clients != 1 || info.BytesSent != 1000 || info.BudgetBytes == 0 ||
		!slices.Equal(info.Addresses, []string{w.address}) {
		t.Errorf("%+v", info)
	}
	if err := w.server.Close(); err != nil {
		t.Error(err)
	}
	if info, found := w.told(); found {
		t.Errorf("after its end: %+v", info)
	}
}

// A server that is stopped keeps nobody waiting for long.
func TestServerThatTellsNothing(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	w.server.mu.Lock() // which the answer needs
	all, err := Servers(testContext(t))
	w.server.mu.Unlock()
	silent := func(s ServerInfo) bool { return s.PID == os.Getpid() && s.Error != "" }
	if err != nil || !slices.ContainsFunc(all, silent) {
		t.Errorf("%+v, %v", all, err)
	}
}
