package main

/*
#include "bind.h"
*/
import "C"

import (
	"context"
	"errors"
	"syscall"
	"time"

	"pinwheel/internal/engine"
	"pinwheel/internal/prefault"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/verbs"
	"pinwheel/verbs/memlock"
)

// registerAhead begins to register memory ahead of its first use, for a thread that waits for the end. If it fails, or the
// thread has given up, it does not begin.
func (s *server) registerAhead(t *C.struct_pw_thread) error {
	d, r, err := s.request(t)
	if err != nil {
		return err
	}
	p, access := &t.prepare, verbs.Access(t.mail.access)
	if at32(&p.state).CompareAndSwap(C.PW_PREPARE_ASKED, C.PW_PREPARE_RUNNING) {
		go s.prepareBeside(d, r, access, p)
	}
	return nil
}

// prepareBeside prepares memory beside the server, which has others to answer. The domain stays meanwhile: it may not be
// closed while a call is under way with it.
func (s *server) prepareBeside(d *domain, r mem.Range, a verbs.Access, p *C.struct_pw_prepare) {
	p.error = C.int32_t(syscall.EIO) // should it panic
	defer func() {
		at32(&p.state).Store(C.PW_PREPARE_DONE)
		C.pw_futex_wake(&p.state)
	}()
	defer s.contain()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go followCancel(ctx, cancel, p)
	o := prefault.Options{
		Threads: int(p.threads), CPUs: placement.Affinity(int(p.tid)), CPU: int(p.cpu),
		Progress: func(done uint64) { at64(&p.done).Store(done) },
	}
	if o.CPUs == nil {
		o.CPUs = []int{o.CPU} // that of the server is wider
	}
	l := verbs.Limits{}
	l.MaxPinnedBytes, l.PinnedSource = memlock.Limit()
	_, err := engine.Prepare(ctx, d.cache, l, r, a, o)
	if err != nil {
		s.info("pinwheel_prepare: " + err.Error())
	}
	p.error = prepareErrno(err)
}

// followCancel ends a context soon after the thread has asked for that.
func followCancel(ctx context.Context, cancel func(), p *C.struct_pw_prepare) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for at32(&p.cancel).Load() == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	cancel()
}

func prepareErrno(err error) C.int32_t {
	switch {
	case errors.Is(err, context.Canceled):
		return C.int32_t(syscall.ECANCELED)
	case errors.Is(err, verbs.ErrNotMapped):
		return C.int32_t(syscall.EFAULT)
	}
	return errnoFor(err)
}
