package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

type raceCmd struct {
	Mechanism string `default:"auto" help:"As PINWHEEL_WATCH, or unwatched."`
	Device    string `default:"io_uring" enum:"io_uring,rdma" help:"What moves the bytes."`
	Threads   int    `default:"2" help:"Threads that change mappings; as many others use them."`
	Changes   int    `default:"20000" help:"In all."`
	Helper    bool   `help:"A further thread deregisters and registers the same regions by itself, as the helper thread does."`
}

// Race is the result, one JSON line.
type Race struct {
	Cell
	Threads       int     `json:"threads"`
	Helper        bool    `json:"helper"`
	Changes       int     `json:"changes"`
	TakenEarly    int64   `json:"taken_early"` // address in use again before the call that freed it returned
	Hits          int64   `json:"hits"`
	Registrations int64   `json:"registrations"`
	Reregistered  int64   `json:"reregistered"` // by the helper
	Stale         int64   `json:"stale"`
	Seconds       float64 `json:"seconds"`
}

// racePages is the size of the contested range; a token is sent on each page.
const racePages = 4

// contested is where the ranges lie: where mmap gives nobody memory unasked.
const contested mem.Addr = 0x2000_0000_0000

// repeats is how often a range is used between two changes.
const repeats = 3

// race is what the pairs share.
type race struct {
	cache  *regcache.Cache
	device device

	changes                                            atomic.Int64 // left to do
	takenEarly, hits, registrations, reregistered, bad atomic.Int64

	ids  []atomic.Uint64 // region last used by each pair, for the helper
	stop atomic.Bool
	fail atomic.Pointer[error]
}

// Run lets threads change mappings while others take the freed addresses as
// soon as the kernel lets them, which is often before the call returns, and
// send fresh bytes from them. There is no race in the program: whoever maps an
// address owns it. Bytes that aren't the owner's were sent by a stale registration.
func (c raceCmd) Run() error {
	runtime.GOMAXPROCS(2*c.Threads + 3)
	r := &race{ids: make([]atomic.Uint64, c.Threads)}
	r.changes.Store(int64(c.Changes))
	var err error
	if r.device, err = openDevice(c.Device); err != nil {
		return err
	}
	defer r.device.Close()
	var o ours
	if o, err = newOurs(r.device, c.Mechanism); err != nil {
		return err
	}
	defer o.close()
	r.cache = o.c
	begin := time.Now()
	var pairs, helper sync.WaitGroup
	for i := range c.Threads {
		p := &pair{race: r, index: i}
		pairs.Go(func() { p.run(p.use) })
		pairs.Go(func() { p.run(p.change) })
	}
	if c.Helper {
		helper.Go(r.help)
	}
	pairs.Wait()
	r.stop.Store(true)
	helper.Wait()
	if e := r.fail.Load(); e != nil {
		return *e
	}
	out := Race{Cell: here(), Threads: c.Threads, Helper: c.Helper, Changes: c.Changes,
		TakenEarly: r.takenEarly.Load(), Hits: r.hits.Load(),
		Registrations: r.registrations.Load(), Reregistered: r.reregistered.Load(), Stale: r.bad.Load(),
		Seconds: time.Since(begin).Seconds()}
	out.Device, out.Mechanism, out.Change, out.Verdict = c.Device, o.name(), "race", detected
	if out.Stale > 0 {
		out.Verdict = stale
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return err
	}
	if out.Stale > 0 && c.Mechanism != unwatched {
		return fmt.Errorf("%w: %d of %d", errStale, out.Stale, c.Changes)
	}
	return nil
}

// help registers and deregisters what the pairs use, with no regard for what
// they are doing. The cache refuses what is in use or gone.
func (r *race) help() {
	for !r.stop.Load() {
		for i := range r.ids {
			id := mem.RegionID(r.ids[i].Load())
			if id != 0 && r.cache.Deregister(id) == nil && r.cache.Register(id) == nil {
				r.reregistered.Add(1)
			}
		}
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// pair is one thread that changes a range and one that uses it. Who may act
// on the range is passed through turn.
type pair struct {
	*race
	index int
	r     mem.Range
	aside mem.Addr // where mremap moves pages to

	turn     atomic.Uint32 // changing: the changer is to begin; using: it has
	returned atomic.Bool   // the changer's call has returned
	what     int           // kind of the last change
}

const (
	using = iota
	changing
	over
)

func (p *pair) run(f func() error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := f(); err != nil {
		p.fail.CompareAndSwap(nil, &err)
		p.turn.Store(over)
	}
}

// change frees the whole range or the end of it whenever it is its turn.
func (p *pair) change() error {
	for tries := 1; ; tries++ {
		switch p.turn.Load() {
		case over:
			return nil
		case using:
			pause(tries)
			continue
		}
		p.turn.Store(using)
		var errno unix.Errno
		switch start, n := uintptr(p.r.Start), uintptr(p.r.Len()); p.what {
		case wholeUnmapped:
			_, _, errno = unix.RawSyscall(unix.SYS_MUNMAP, start, n, 0)
		case wholeMoved:
			_, _, errno = unix.RawSyscall6(unix.SYS_MREMAP, start, n, n,
				unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, uintptr(p.aside), 0)
		case endUnmapped:
			_, _, errno = unix.RawSyscall(unix.SYS_MUNMAP, start+n/2, n/2, 0)
		case endCut:
			_, _, errno = unix.RawSyscall6(unix.SYS_MREMAP, start, n, n/2, 0, 0, 0)
		}
		p.returned.Store(true)
		if errno != 0 {
			return fmt.Errorf("change %d: %w", p.what, errno)
		}
	}
}

const (
	wholeUnmapped = iota
	wholeMoved
	endUnmapped
	endCut
	whats
)

// use owns the range from the moment that it could map it.
func (p *pair) use() error {
	local, err := p.cache.Thread()
	if err != nil {
		return err
	}
	defer local.Close()
	n := racePages * mem.PageSize
	base := contested + mem.Addr(p.index)<<30
	p.r = mem.Range{Start: base, End: base + mem.Addr(n)}
	p.aside = base + 1<<29
	if err := errors.Join(mapAt(p.r.Start, n), mapAt(p.aside, n)); err != nil {
		return err
	}
	l, err := p.device.link(n)
	if err != nil {
		return err
	}
	defer l.close()
	for token := uint64(p.index+1) << 48; ; token++ {
		for range repeats {
			if err := p.send(local, l, token); err != nil {
				return err
			}
		}
		for tries := 1; !p.returned.Load() && token&(1<<48-1) != 0; tries++ {
			pause(tries)
		}
		if p.changes.Add(-1) < 0 {
			p.turn.Store(over)
			return nil
		}
		p.what = int(token % whats)
		part := p.r
		if p.what == endUnmapped || p.what == endCut {
			part.Start += mem.Addr(n / 2)
		}
		p.returned.Store(false)
		p.turn.Store(changing)
		if err := p.take(part); err != nil {
			return err
		}
		if !p.returned.Load() {
			p.takenEarly.Add(1)
		}
	}
}

// send stores token on every page, sends the range, and looks at what arrived.
func (p *pair) send(local *regcache.Local, l link, token uint64) error {
	memory := p.r.Bytes()
	for at := 0; at < len(memory); at += int(mem.PageSize) {
		binary.LittleEndian.PutUint64(memory[at:], token)
	}
	ref, outcome, err := local.Acquire(p.r, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	if outcome == regcache.Hit {
		p.hits.Add(1)
	} else {
		p.registrations.Add(1)
	}
	p.ids[p.index].Store(uint64(ref.ID()))
	buf, err := l.send(ref.Region(), p.r)
	local.Release(ref)
	if err != nil {
		return err
	}
	for at := 0; at < len(buf); at += int(mem.PageSize) {
		if binary.LittleEndian.Uint64(buf[at:]) != token {
			p.bad.Add(1)
			break
		}
	}
	return nil
}

// take maps r as soon as nothing is mapped there.
func (p *pair) take(r mem.Range) error {
	for tries := 1; ; tries++ {
		err := mapAt(r.Start, r.Len())
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		if tries%16 == 0 {
			pause(tries)
		}
		if p.turn.Load() == over {
			return errors.New("the other thread has stopped")
		}
	}
}

// mapAt maps n bytes where nothing is mapped.
func mapAt(addr mem.Addr, n uint64) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_MMAP, uintptr(addr), uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if errno != 0 {
		return fmt.Errorf("mmap: %w", errno)
	}
	return nil
}

// pause lets other threads run: the processor may be the one that they need.
func pause(tries int) {
	if tries%256 == 0 {
		unix.Nanosleep(&unix.Timespec{Nsec: 50_000}, nil)
		return
	}
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
