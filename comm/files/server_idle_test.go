package files

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pinwheel/comm/vmmc/rpc"
	"pinwheel/internal/testwait"
)

func TestIdleClientIsEnded(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{IdleTimeout: 300 * time.Millisecond, AllowWrite: true})
	var u *Upload
	testwait.Until(t, "an upload is open before its client is idle", func() (begun bool) {
		var err error
		u, err = w.client().Create(testContext(t), "f", CreateOptions{})
		return err == nil
	})
	// What came before those has waited longer when they have been ended.
	for range 2 {
		c := w.client()
		testwait.Until(t, "the server has ended it", func() bool { return w.server.Stats().Clients == 1 })
		if _, err := c.Stat(testContext(t), "."); !errors.Is(err, ErrPeerGone) {
			t.Error(err)
		}
	}
	if _, err := u.WriteAt(testContext(t), []byte("x"), 0); err != nil {
		t.Errorf("an upload that was open: %v", err)
	}
}

func TestClientIsIdleOnlyWithoutWork(t *testing.T) {
	const bears = 10 * time.Minute
	for what, test := range map[string]struct {
		change func(v *session)
		idle   bool
	}{
		"has asked for nothing":   {func(*session) {}, true},
		"has a window":            {func(v *session) { v.handles.of[1] = &target{} }, true},
		"waits for an answer":     {func(v *session) { v.serving.Inc() }, false},
		"has a file open":         {func(v *session) { v.handles.of[1] = &served{} }, false},
		"has an upload open":      {func(v *session) { v.handles.of[1] = &uploading{} }, false},
		"has said no hello":       {func(v *session) { v.greeted.Store(false) }, true},
		"has a window and a file": {func(v *session) { v.handles.of[1], v.handles.of[2] = &target{}, &served{} }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := &session{
				Server: &Server{opt: ServerOptions{IdleTimeout: bears}}, calls: rpc.NewServer(rpcOptions()), began: time.Now(),
				handles: handles{of: map[uint64]opened{}},
			}
			v.greeted.Store(true)
			test.change(v)
			ended, hungUp := make(chan struct{}), make(chan bool, 1)
			go func() {
				v.watch(ended, func() { hungUp <- true })
				close(hungUp)
			}()
			time.Sleep(24 * time.Hour)
			close(ended)
			if got := <-hungUp; got != test.idle {
				t.Errorf("who %s was ended: %v", what, got)
			}
		})
	}
}
