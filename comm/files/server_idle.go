package files

import "time"

// progress says that the client is not idle.
func (v *session) progress() { v.last.Store(time.Since(v.began)) }

// idle returns for how long the client has asked for nothing and got nothing. One that has a file or an upload open may
// compute a checksum of its own meanwhile, for as long as it likes: whether it is there is for the heartbeat of its
// connection to find out.
func (v *session) idle() time.Duration {
	switch serving := v.serving.Load(); {
	case serving > 0:
		return 0
	case v.calls.Calls() == 0 && v.handles.working(): // else it takes no answer
		return 0
	}
	return time.Since(v.began) - v.last.Load()
}

// watch calls hangUp for a client that says no hello, or that is idle for too long, unless its connection ended before.
func (v *session) watch(ended <-chan struct{}, hangUp func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return
		case <-timer.C:
		}
		bears := greetTime
		if v.greeted.Load() {
			bears = v.opt.IdleTimeout
		}
		if v.idle() >= bears {
			hangUp()
			return
		}
		timer.Reset(min(bears, v.opt.IdleTimeout) / 4)
	}
}

// working tells whether more is open than windows and data connections, which are for what the client asks for.
func (h *handles) working() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.of {
		switch o.(type) {
		case *target, *dataConn:
		default:
			return true
		}
	}
	return false
}
