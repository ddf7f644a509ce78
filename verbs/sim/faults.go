package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/atomic"

	"pinwheel/mem"
)

// Faults decide which calls fail or take longer. Give its methods to
// Options.Fail and Options.Delay. Made by Script or Random; safe for
// concurrent use, though "the third call" is then whoever comes third.
type Faults struct {
	decide  func(op Op, n uint64) (time.Duration, error)
	fails   [2]atomic.Uint64 // calls seen so far, by Op
	delayed [2]atomic.Uint64
}

// Fail is for Options.Fail.
func (f *Faults) Fail(op Op, _ mem.Range) error {
	_, err := f.decide(op, f.fails[op].Add(1))
	return err
}

// Delay is for Options.Delay.
func (f *Faults) Delay(op Op, _ mem.Range) time.Duration {
	d, _ := f.decide(op, f.delayed[op].Add(1))
	return d
}

var errnos = map[string]syscall.Errno{"ENOMEM": syscall.ENOMEM, "EAGAIN": syscall.EAGAIN, "EFAULT": syscall.EFAULT,
	"EPERM": syscall.EPERM, "ENOSPC": syscall.ENOSPC, "EINTR": syscall.EINTR}

// Script reads faults from text: one to a line or separated by semicolons,
// each the call, its number or numbers counted from 1, and what happens to it,
//
//	register 3 ENOMEM
//	register 5-9 EAGAIN
//	deregister 2- EFAULT
//	register 4 20ms
//
// where what happens is an errno or a duration.
func Script(text string) (*Faults, error) {
	type rule struct {
		op          Op
		first, last uint64
		delay       time.Duration
		err         error
	}
	var rules []rule
	for _, line := range strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == ';' }) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		bad := func(what string) (*Faults, error) {
			return nil, fmt.Errorf("sim: fault %q: %s; want like \"register 3-5 ENOMEM\" or \"deregister 2- 20ms\"", strings.TrimSpace(line), what)
		}
		if len(f) != 3 {
			return bad("not three words")
		}
		r := rule{op: OpRegister}
		switch f[0] {
		case "register":
		case "deregister":
			r.op = OpDeregister
		default:
			return bad("unknown call " + f[0])
		}
		first, last, isRange := strings.Cut(f[1], "-")
		if !isRange {
			last = first
		}
		var err error
		if r.first, err = strconv.ParseUint(first, 10, 64); err != nil || r.first == 0 {
			return bad("call numbers start at 1")
		}
		if r.last = ^uint64(0); last != "" {
			if r.last, err = strconv.ParseUint(last, 10, 64); err != nil || r.last < r.first {
				return bad("last call is before the first")
			}
		}
		if errno, ok := errnos[f[2]]; ok {
			r.err = errno
		} else if r.delay, err = time.ParseDuration(f[2]); err != nil || r.delay < 0 {
			return bad("neither a duration nor one of " + strings.Join(slices.Sorted(maps.Keys(errnos)), " "))
		}
		rules = append(rules, r)
	}
	return &Faults{decide: func(op Op, n uint64) (delay time.Duration, err error) {
		for _, r := range rules {
			if r.op != op || n < r.first || n > r.last {
				continue
			}
			delay += r.delay
			if err == nil {
				err = r.err
			}
		}
		return delay, err
	}}, nil
}

// Rates are probabilities of a fault per call, from 0 to 1.
type Rates struct {
	Fail map[syscall.Errno]float64
	// Slow calls take up to MaxDelay longer, uniformly.
	Slow     float64
	MaxDelay time.Duration
}

// Random returns faults that depend on nothing but the seed, the call and its
// number.
func Random(seed uint64, rates Rates) *Faults {
	kinds := slices.Sorted(maps.Keys(rates.Fail))
	return &Faults{decide: func(op Op, n uint64) (time.Duration, error) {
		rng := rand.New(rand.NewPCG(seed, n<<1|uint64(op)))
		var delay time.Duration
		if rng.Float64() < rates.Slow {
			delay = time.Duration(rng.Float64() * float64(rates.MaxDelay))
		}
		x := rng.Float64()
		for _, errno := range kinds {
			if x -= rates.Fail[errno]; x < 0 {
				return delay, errno
			}
		}
		return delay, nil
	}}
}
