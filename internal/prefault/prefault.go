package prefault

import (
	"context"
	"io/fs"
	"os"
	"time"

	"pinwheel/helper"
	"pinwheel/internal/machine"
	"pinwheel/mem"
	"pinwheel/placement"
)

// Options say how Run works. The zero value is for reading.
type Options struct {
	// Write provides pages that can be written: for registrations with a right to write.
	Write bool
	// Threads is how many threads work. 0 stands for one and those on idle processors.
	Threads int
	// Progress is called by Run itself, not by its threads, with the bytes that are done so far.
	Progress func(done uint64)
	// CPUs is the affinity mask of the caller, and CPU where it runs or helper.AnyCPU. nil: those of the thread that
	// calls Run.
	CPUs []int
	CPU  int

	// For tests; the zero values mean this machine.
	root     fs.FS
	claims   func() ([]placement.Claim, error)
	mappings func() ([]machine.Mapping, error)
	touch    func(part) error
	policy   func(mem.Addr) (nodes []int)
	lookTime time.Duration
}

func (o *Options) ensureDefaults() {
	if o.CPUs == nil {
		o.CPUs, o.CPU = placement.Affinity(0), helper.CurrentCPU()
	}
	if o.root == nil {
		o.root = os.DirFS("/")
	}
	if o.claims == nil {
		o.claims = placement.Claims
	}
	if o.mappings == nil {
		o.mappings = machine.Mappings
	}
	if o.touch == nil {
		o.touch = touch
	}
	if o.policy == nil {
		o.policy = policyOf
	}
	if o.lookTime == 0 {
		o.lookTime = placement.LookTime
	}
}

// Run provides the pages of r, and returns how many threads did. If it fails, or ctx ends, some of the pages were
// provided. When it returns, none of its threads touches r any more: it waits for the slices that they have begun.
//
// It fails with verbs.ErrNotMapped, before anything is touched, if a part of r is not mapped, or not for Options.Write.
// Other errors are those of the kernel. The memory must be outside the Go heap.
func Run(ctx context.Context, r mem.Range, o Options) (threads int, err error) {
	o.ensureDefaults()
	all, err := o.mappings()
	if err != nil {
		return 0, err
	}
	parts, err := plan(r, o.Write, all)
	if err != nil {
		return 0, err
	}
	c := newCrew(&o, parts)
	defer c.wait()
	looked, look := c.begin(ctx)
	for {
		select {
		case <-looked:
			c.join(ctx, look)
		case <-c.moved:
			c.tell()
		case <-c.ended:
			c.tell()
			return c.threads, c.failed()
		}
	}
}

// begin starts the threads that Options.Threads asks for; or else one, and a look at what is idle beside it, which is
// over when looked says so.
func (c *crew) begin(ctx context.Context) (looked <-chan time.Time, look *placement.Idle) {
	usable := len(c.usable)
	if c.opt.Threads > 0 || usable == 1 {
		for range min(max(c.opt.Threads, 1), usable, len(c.parts)) {
			c.start(ctx, c.usable, helper.AnyCPU)
		}
		return nil, nil
	}
	look, err := placement.LookForIdle(c.opt.root, c.opt.claims)
	c.start(ctx, c.usable, c.opt.CPU) // elsewhere, what it uses would look busy
	if err != nil {
		return nil, nil // of what is not known to be idle, nothing is used
	}
	return time.After(c.opt.lookTime), look
}

// join starts a thread on each processor that was idle.
func (c *crew) join(ctx context.Context, look *placement.Idle) {
	idle, err := look.CPUs(c.usable, c.opt.CPU)
	if err != nil {
		return
	}
	for _, cpu := range idle {
		c.start(ctx, []int{cpu}, cpu)
	}
}
