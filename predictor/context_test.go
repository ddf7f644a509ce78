package predictor

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

// divideAll gives every context of the last use of a region a follower of its own, and forgets the way to them.
func (p *Pinwheel) divideAll(id mem.RegionID) {
	r := p.regions[id]
	for level := levelWindow - 1; level >= 0; level-- {
		if f := r.path.followers[level]; int(f.level) > level {
			p.contexts.divide(&r.contexts, &r.path.followers, level)
		}
	}
	r.path.edition, r.path.window = 0, 0 // to be looked up at every level
}

// learnedOf is what a context has learned.
type learnedOf struct {
	gaps, afters []int64
	cold         bool
	confidence   int
	steps, sig   uint64
}

func (p *Pinwheel) learnedAt(id mem.RegionID, level int) learnedOf {
	f := p.regions[id].path.followers[level]
	l := learnedOf{gaps: f.gaps.latest(gapMemory), cold: f.cold}
	if t := f.trigger; level >= levelSite && t != nil {
		l.confidence, l.steps, l.sig, l.afters = t.confidence, t.steps, t.sig, t.gaps.latest(gapMemory)
	}
	return l
}

func (l learnedOf) equal(m learnedOf) bool {
	gaps, afters := slices.Equal(l.gaps, m.gaps), slices.Equal(l.afters, m.afters)
	return gaps && afters && l.cold == m.cold && l.confidence == m.confidence && l.steps == m.steps && l.sig == m.sig
}

// drawUses draws a program of few calls, which repeats some of them, so that contexts part at every level and are met
// again.
func drawUses(t *rapid.T, n int) (all []Use) {
	call := rapid.Custom(func(t *rapid.T) (u Use) {
		u.Region = mem.RegionID(rapid.Uint64Range(1, 2).Draw(t, "region"))
		size := rapid.SampledFrom([]mem.Addr{4096, 65536}).Draw(t, "size")
		u.Range, u.Bytes, u.LeadNs = mem.Range{Start: 4096, End: 4096 + size}, 65536, ms/10
		for i := range rapid.IntRange(1, 4).Draw(t, "depth") {
			u.Frames[i] = rapid.Uint64Range(1, 2).Draw(t, "frame")
		}
		return u
	})
	nowNs := int64(0)
	for len(all) < n {
		calls := rapid.SliceOfN(call, 1, 4).Draw(t, "calls")
		for i := range len(calls) * rapid.IntRange(1, 5).Draw(t, "times") {
			u := calls[i%len(calls)]
			nowNs += ms * rapid.Int64Range(1, 20).Draw(t, "pause")
			u.StartNs, u.EndNs = nowNs, nowNs+ms
			all = append(all, u)
			nowNs = u.EndNs
		}
	}
	return all
}

func TestContextsThatShareWhatTheyLearnedPredictAsIfEachHadItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Window: rapid.IntRange(0, 1).Draw(t, "window")}
		if rapid.Bool().Draw(t, "with trained entries") {
			before := NewPinwheel(o)
			for _, u := range drawUses(t, 40) {
				before.Observe(u)
			}
			l := before.Trained()
			o.Trained = &l
		}
		most := rapid.SampledFrom([]int{7, 20, leastGeneration}).Draw(t, "most contexts")
		shared, apart := NewPinwheel(o), NewPinwheel(o)
		for i, u := range drawUses(t, 80) {
			if i%20 == 19 {
				shared.Forget(u.Region)
				apart.Forget(u.Region)
			}
			shared.contexts.most, apart.contexts.most = most, most
			shared.Observe(u)
			apart.Observe(u)
			apart.divideAll(u.Region)
			for id := range shared.regions {
				got, gotOK := shared.Next(id, 0)
				if want, wantOK := apart.Next(id, 0); got != want || gotOK != wantOK {
					t.Fatalf("use %d, region %d: %+v, %t, want %+v, %t", i, id, got, gotOK, want, wantOK)
				}
				for level := range levels {
					if got, want := shared.learnedAt(id, level), apart.learnedAt(id, level); !got.equal(want) {
						t.Fatalf("use %d, region %d, level %d: %+v, want %+v", i, id, level, got, want)
					}
				}
			}
			got, want := &shared.contexts, &apart.contexts
			if len(got.present) != len(want.present) || len(got.old) != len(want.old) {
				t.Fatalf("use %d: %d contexts and %d old ones, want %d and %d",
					i, len(got.present), len(got.old), len(want.present), len(want.old))
			}
		}
		if got, want := shared.Trained(), apart.Trained(); !reflect.DeepEqual(got, want) {
			t.Fatalf("trained %+v, want %+v", got, want)
		}
	})
}

func TestContextsOfSomeFramesHaveNoHits(t *testing.T) {
	p, nowNs := NewPinwheel(Options{}), int64(0)
	use := func(size mem.Addr) *[levels]*follower {
		nowNs += 100 * ms
		u := Use{Region: 1, Bytes: 65536, Range: mem.Range{Start: 4096, End: 4096 + size}, StartNs: nowNs, EndNs: nowNs + ms}
		u.Frames[0] = 1
		p.Observe(u)
		return &p.regions[1].path.followers
	}
	for range 20 {
		use(4096)
	}
	if f := use(4096); f[levelFrame1] != f[levelSite] || f[levelSite].trigger == nil {
		t.Fatalf("one context: %+v, %+v", f[levelFrame1], f[levelSite])
	}
	if f := use(65536); f[levelFrame3].trigger != nil || f[levelFrame3].gaps.n == 0 {
		t.Fatalf("of some frames, once there are two sizes: %+v", f[levelFrame3])
	}
}
