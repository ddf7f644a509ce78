package regcache_test

import (
	"errors"
	"testing"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/open"
	"pinwheel/verbs/verbstest"
	"pinwheel/vmwatch"
)

// counting counts how often a provider is asked to register.
type counting struct {
	verbs.Provider
	tries atomic.Int64
}

func (c *counting) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	c.tries.Inc()
	return c.Provider.Register(r, a)
}

// A provider accepts read-only memory with some rights, or refuses it. The cache keeps what is accepted, and what is
// refused is not tried at each use. Whether memory has become writable nobody tells, so some uses find out.
func TestReadOnlyMemoryIsNotTriedAtEachUse(t *testing.T) {
	for _, name := range []string{"rdma", "uring", "mlock"} {
		for rights, access := range map[string]verbs.Access{
			"reading": verbs.AccessRemoteRead, "writing": verbs.AccessLocalWrite | verbs.AccessRemoteWrite,
		} {
			t.Run(name+", for "+rights, func(t *testing.T) {
				testwait.Bound(t)
				p, err := open.Provider(name, open.Options{})
				verbstest.Available(t, err)
				defer p.Close()
				verbstest.NeedPinned(t, p, 1<<20)
				useReadOnly(t, &counting{Provider: p}, access)
			})
		}
	}
}

func useReadOnly(t *testing.T, p *counting, access verbs.Access) {
	w, err := vmwatch.Open(vmwatch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if m := w.Mechanism(); m == vmwatch.None || m == vmwatch.PFN {
		t.Skip("nothing here tells of changed mappings but ", m)
	}
	c, err := regcache.New(p, regcache.Options{Watcher: w, Fallback: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const uses, between = 200, 64 // a use finds out, and each 64th one after it
	b, r := verbstest.Map(t, 64<<10)
	b[0] = 1
	if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	use := func() (ok bool) {
		t.Helper()
		ref, _, err := c.Acquire(r, access)
		switch {
		case err == nil:
			c.Release(ref)
		case !errors.Is(err, verbs.ErrNotMapped):
			t.Fatal(err)
		}
		return err == nil
	}
	accepted := use()
	for range uses - 1 {
		if use() != accepted {
			t.Fatalf("accepted at first: %v, and not so later", accepted)
		}
	}
	t.Logf("accepted: %v; tried %d times in %d uses", accepted, p.tries.Load(), uses)
	if n := p.tries.Load(); accepted && w.Mechanism() != vmwatch.Uffd && n > 1 || !accepted && n > 1+uses/between {
		t.Errorf("accepted: %v; tried %d times in %d uses", accepted, n, uses)
	}
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	later := 0
	for ; !use(); later++ {
		if later == between {
			t.Fatalf("it is writable, and is refused after %d uses", later)
		}
	}
}
