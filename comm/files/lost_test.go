package files

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// loseRDMA has the device of the server fail on the way to its only client: it sends a page that is registered and
// gone. It waits for RDMA that is on its way.
func (w *world) loseRDMA(ctx context.Context) error {
	var in *vmmc.Import
	w.server.mu.Lock()
	for v := range w.server.sessions {
		v.handles.mu.Lock()
		for _, o := range v.handles.of {
			if window, ok := o.(*target); ok {
				in = window.in
			}
		}
		v.handles.mu.Unlock()
	}
	w.server.mu.Unlock()
	f, err := os.CreateTemp(w.t.TempDir(), "")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(int64(mem.PageSize)); err != nil {
		return err
	}
	page, err := mapFile(f, int64(mem.PageSize))
	if err != nil {
		return err
	}
	thread, err := w.server.registrar.thread()
	if err != nil {
		return err
	}
	defer w.server.registrar.giveBack(thread)
	var use pinwheel.Use
	if err := thread.Acquire(&use, mem.RangeOf(page), 0, opMap, &fileSite); err != nil {
		return err
	}
	defer func() {
		thread.Release(&use)
		w.server.registrar.forget(mem.RangeOf(page))
		_ = unix.Munmap(page)
	}()
	if err := f.Truncate(0); err != nil {
		return err
	}
	if !in.AwaitRDMA(ctx) {
		return nil // it is lost already
	}
	op, err := in.SendAsync(page, 0, vmmc.SendOptions{Registered: &use})
	if err == nil {
		err = op.Wait(ctx)
	}
	if ctx.Err() == nil && !errors.Is(err, vmmc.ErrNoRDMA) {
		return errors.Join(errors.New("the device did not fail"), err)
	}
	return nil
}

// Copies go on through the connection while RDMA fails again and again, and by RDMA when it no longer does.
func TestRDMAThatIsLostInACopy(t *testing.T) {
	rdma := overRDMA(t)
	node := rdma.node
	rdma.node = func(t testing.TB, name string) vmmc.Options { return withWarn(node(t, name)) }
	w := rdma.serve(t, ServerOptions{})
	content := random(much)
	w.write("f", content)
	c := w.client()
	byRDMA := func() bool { // a whole copy was, at its end
		var got bytes.Buffer
		n, err := open(t, c, "f").CopyRange(testContext(t), &got, 0, much)
		if n != much || err != nil {
			t.Fatalf("%d bytes by %s, %v", n, c.Transport(), err)
		}
		same(t, "f", got.Bytes(), content)
		return c.Transport() == ByRDMA
	}
	testwait.Until(t, "RDMA", byRDMA)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	lost := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = w.loseRDMA(ctx)
		}
		lost <- err
	}()
	for range 3 {
		byRDMA()
	}
	testwait.Until(t, "something goes through the connection", func() bool {
		byRDMA()
		return w.server.Stats().BytesTLS > 0
	})
	cancel()
	if err := testwait.Receive(t, "the end of the faults", lost); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "RDMA is back", byRDMA)
	if st := w.server.Stats(); st.Errors > 0 {
		t.Errorf("%+v", st)
	}
}
