package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/atomic"

	"pinwheel"
	"pinwheel/comm/files/internal/turns"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// RegistrarOptions configure a Registrar.
type RegistrarOptions struct {
	Strategy    pipe.Strategy // the zero value stands for pipe.Auto
	BudgetBytes int64         // that are registered at a time; 0 as in ServerOptions
	MaxMappings int           // files that stay mapped; 0 stands for 256
	// Warn gets a line whenever memory can't be registered at all. nil: standard error.
	Warn func(message string)
}

// DefaultBudget is that of ServerOptions and RegistrarOptions, in bytes.
const DefaultBudget = 64 << 20 // 64 MiB

const (
	defaultMappings = 256
	maxActive       = 16 // transfers at a time whose speed is that of this machine
)

// Registrar registers memory that files are sent from: by one pinwheel.Manager for the device of a node, with the
// policy of a strategy. It keeps the mappings of files, and says which client is next. All methods are safe for
// concurrent use.
type Registrar struct {
	opt      RegistrarOptions
	provider verbs.Provider // nil: the node has no RDMA
	mappings mappings
	rings    rings
	refused  atomic.Int64
	waits    atomic.Int64
	// clientBytes are what the transfers of one client may have registered.
	clientBytes int64
	abreast     bool // it is enough for all reads of a window in one chunk each

	// setup protects these.
	setup   sync.Mutex
	manager *pinwheel.Manager
	counted RegistrarStats // by a manager that was closed
	failed  error          // why there is none

	// mu protects what follows. It is a leaf.
	mu    sync.Mutex
	turns *turns.Turns
	begun map[*turns.Turn]chan struct{} // closed when it is its turn
	idle  []*pinwheel.Thread
}

// NewRegistrar returns a Registrar for what a node sends. It makes its Manager with the first transfer by RDMA. It
// fails if the options make no sense.
func NewRegistrar(n *vmmc.Node, o RegistrarOptions) (*Registrar, error) {
	return newRegistrar(n, o, true)
}

// newRegistrar is NewRegistrar. Without rdma it opens no device: all that is sent to shares memory.
func newRegistrar(n *vmmc.Node, o RegistrarOptions, rdma bool) (*Registrar, error) {
	if o.Strategy == (pipe.Strategy{}) {
		o.Strategy = pipe.Auto
	}
	o.MaxMappings = cmp.Or(o.MaxMappings, defaultMappings)
	if _, err := pipe.New(0, o.Strategy.Shape); err != nil {
		return nil, err
	}
	if o.BudgetBytes < 0 || o.MaxMappings < 0 {
		return nil, fmt.Errorf("files: a budget of %d bytes, %d mappings", o.BudgetBytes, o.MaxMappings)
	}
	if o.Warn == nil {
		o.Warn = warnStderr
	}
	r := &Registrar{begun: map[*turns.Turn]chan struct{}{}}
	if rdma {
		if p, err := n.Provider(); err == nil {
			r.provider = p
		}
	}
	if o.BudgetBytes == 0 {
		o.BudgetBytes = DefaultBudget
		if r.provider != nil {
			o.BudgetBytes = max(min(o.BudgetBytes, r.provider.Limits().MaxPinnedBytes/2), int64(mem.PageSize))
		}
	}
	r.opt = o
	r.mappings = mappings{most: o.MaxMappings, forget: r.forget, of: map[fileKey]*mapping{}}
	r.rings = rings{keep: o.BudgetBytes / 4, forget: r.forget, idle: map[int64][][]byte{}}
	// Shorter transfers have more and smaller chunks, so more pages at their ends.
	shorter := o.Strategy
	shorter.Adapts = false
	for _, s := range []pipe.Strategy{o.Strategy, shorter} {
		r.clientBytes = max(r.clientBytes, r.use(s.For(o.BudgetBytes, o.BudgetBytes)))
	}
	// A client reads several parts at a time, which hide what each takes to begin and to end. With a small budget, more of
	// the file stays registered instead.
	if several := windowSlots * r.use(single); o.Strategy.Adapts && several <= o.BudgetBytes/4*3 {
		r.clientBytes, r.abreast = max(r.clientBytes, several), true
	}
	r.turns = turns.New(turns.Limits{Bytes: o.BudgetBytes, ClientBytes: r.clientBytes, Active: maxActive})
	return r, nil
}

func warnStderr(message string) { fmt.Fprintln(os.Stderr, "pinwheel: files: "+message) }

// use is how many bytes a transfer has registered at most, in whole pages wherever it begins.
func (r *Registrar) use(s pipe.Shape) int64 {
	return min(s.ChunkBytes+int64(mem.PageSize), r.opt.BudgetBytes) * int64(s.Depth)
}

// keeps returns how many bytes of a file of some size may stay registered, from its beginning. A file that is larger
// than the budget would push itself out, and find nothing when it is sent again: of that, what fits beside a transfer.
func (r *Registrar) keeps(size int64) int64 {
	if size <= r.opt.BudgetBytes || r.opt.Strategy.Policy == pinwheel.OnDemand {
		return size
	}
	return max(r.opt.BudgetBytes-r.clientBytes, 0)
}

// thread lends a Thread of the Manager, which it makes if there is none.
func (r *Registrar) thread() (*pinwheel.Thread, error) {
	m, err := r.manage()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	if k := len(r.idle); k > 0 {
		t := r.idle[k-1]
		r.idle = r.idle[:k-1]
		r.mu.Unlock()
		return t, nil
	}
	r.mu.Unlock()
	return m.Thread()
}

func (r *Registrar) giveBack(t *pinwheel.Thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, t)
}

// manage returns the Manager. What it registers are mappings and rings of this package, of whose end it hears from
// here: it watches nothing.
func (r *Registrar) manage() (*pinwheel.Manager, error) {
	r.setup.Lock()
	defer r.setup.Unlock()
	if r.manager == nil && r.failed == nil {
		r.manager, r.failed = pinwheel.New(pinwheel.Options{
			Policy: r.opt.Strategy.Policy, BudgetBytes: r.opt.BudgetBytes, Provider: r.provider, Warn: r.opt.Warn,
		})
		if r.failed != nil {
			r.opt.Warn(fmt.Sprintf("no file goes by RDMA, as nothing can be registered: %v", r.failed))
		}
	}
	return r.manager, r.failed
}

// forget ends registrations before memory is unmapped.
func (r *Registrar) forget(of mem.Range) {
	r.setup.Lock()
	m := r.manager
	r.setup.Unlock()
	if m != nil {
		_ = m.Invalidate(of) // it fails for a Manager that is closed, which has nothing registered
	}
}

// await waits for the turn of a transfer.
func (r *Registrar) await(ctx context.Context, c turns.Client, a turns.Ask) (*turns.Turn, error) {
	begun := make(chan struct{})
	r.mu.Lock()
	t := r.turns.Add(c, a)
	r.begun[t] = begun
	r.advance()
	r.mu.Unlock()
	select {
	case <-begun:
		return t, nil
	default:
	}
	r.waits.Inc()
	select {
	case <-begun:
		return t, nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.turns.Cancel(t) {
		return t, nil
	}
	delete(r.begun, t)
	r.advance() // another may have waited behind it
	return nil, context.Cause(ctx)
}

// alone reports whether only one transfer is going on that counts.
func (r *Registrar) alone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns.Active() == 1
}

// of returns how many transfers of a client wait or go on.
func (r *Registrar) of(c turns.Client) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns.Of(c)
}

// over ends a turn.
func (r *Registrar) over(t *turns.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns.Done(t)
	r.advance()
}

// advance begins the transfers whose turn it is. mu is held.
func (r *Registrar) advance() {
	for t, ok := r.turns.Next(); ok; t, ok = r.turns.Next() {
		close(r.begun[t])
		delete(r.begun, t)
	}
}

// Stats returns the counts so far.
func (r *Registrar) Stats() RegistrarStats {
	r.setup.Lock()
	m, s := r.manager, r.counted
	r.setup.Unlock()
	if m != nil {
		s = countedBy(m)
	}
	s.Refused, s.Waits, s.BudgetBytes = r.refused.Load(), r.waits.Load(), r.opt.BudgetBytes
	s.Mappings, s.MappingHits = r.mappings.count()
	return s
}

// countedBy returns what a Manager counts.
func countedBy(m *pinwheel.Manager) RegistrarStats {
	c := m.Stats().Cache
	return RegistrarStats{
		Registrations: int64(c.First + c.Late), Hits: int64(c.Hits + c.Waited),
		PinnedBytes: c.Pinned.Bytes, PeakBytes: c.PeakPinnedBytes,
	}
}

// Close gives back all that is registered and mapped. Stats still returns what was counted. No Send may be under way.
// It must be called before the node's.
func (r *Registrar) Close() error {
	r.mappings.close()
	r.rings.close()
	r.mu.Lock()
	for _, t := range r.idle {
		t.Close()
	}
	r.idle = nil
	r.mu.Unlock()
	r.setup.Lock()
	defer r.setup.Unlock()
	m := r.manager
	r.manager, r.failed = nil, errors.Join(r.failed, ErrClosed)
	if m == nil {
		return nil
	}
	r.counted = countedBy(m)
	r.counted.PinnedBytes = 0
	return m.Close()
}
