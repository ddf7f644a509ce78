package main

import (
	"context"
	"fmt"

	"pinwheel"
	"pinwheel/comm/files"
	"pinwheel/comm/files/filesbench"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/report"
	"pinwheel/mem"
)

// row is something that is measured in each round: most often a curve of a figure, named FIGURE/CURVE.
type row struct {
	name    string
	once    bool // in the first round only: it takes long
	measure func(ctx context.Context, b *bench) ([]point, error)
}

// Names of figures, as comm/files/report has them, and of what has none.
const (
	naive         = "2-naive"
	pages         = "3-pages"
	pipes         = "4-pipes"
	sendfilePages = "5-sendfile-pages"
	sendfilePipes = "6-sendfile-pipes"
	buffers       = "7-buffers"
	sendfileBufs  = "8-sendfile-buffers"
	registration  = "9-registration"
	allCold       = "10-cold"
	allHot        = "10-hot"
	wholeGets     = "gets"
	secondGet     = "second get"
	manyGets      = "clients"
	device        = "device"
	copies        = "copies"
)

// When the second get of a file begins.
const (
	atOnce = "at once"
	later  = "by another client"
)

// curveSizes are the sizes of files in Figures 2 to 6, and allSizes those of Figure 10.
var (
	curveSizes = []int64{4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib}
	allSizes   = []int64{1, 64, kib, 4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib, 256 * mib, gib}
	bufferSize = int64(16 * mib) // of the file in Figures 7 and 8
	deviceSize = int64(64 * mib) // with which the device is measured
)

// pageCounts are those of a message in Figures 3 and 5, and pipeCounts those of Figures 4 and 6.
var pageCounts, pipeCounts = []int{1, 4, 16, 64, 256, 1024}, []int{1, 2, 4, 6}

// pipesAndPages are those of Figures 7 and 8, and further ones with as much memory as Figure 10 has.
var pipesAndPages = func() (all [][2]int) {
	for _, pipes := range []int{1, 2, 4} {
		for _, pages := range []int{4, 8, 16, 32, 64, 128} {
			all = append(all, [2]int{pipes, pages})
		}
	}
	return all
}()

// shaped is a strategy that maps the file and registers chunks of so many pages.
func shaped(pages int, pipes, ahead int, policy pinwheel.Policy) pipe.Strategy {
	return pipe.Strategy{Name: "shape", Policy: policy, Shape: pipe.Shape{
		Source: pipe.Map, ChunkBytes: int64(pages) * int64(mem.PageSize), Depth: pipes, Ahead: ahead,
	}}
}

// pipelined and sendfile differ only where a device takes no more: sendfile registers further chunks meanwhile.
func pipelined(pages, pipes int) pipe.Strategy { return shaped(pages, pipes, 0, pinwheel.OnDemand) }
func sendfile(pages, pipes int) pipe.Strategy {
	return shaped(pages, pipes, min(pipes, pipe.Sendfile.Shape.Ahead), pinwheel.OnDemand)
}

// registered finds what it sends registered.
func registered(pages, pipes int) pipe.Strategy { return shaped(pages, pipes, 0, pinwheel.LeavePinned) }

var oneBuffer = pipe.Strategy{Name: "one buffer", Shape: pipe.Shape{Source: pipe.Copy, Depth: 1}, Policy: pinwheel.LeavePinned}

// deviceWays are how the most that the device can do is looked for: by the pages of a message and the messages under way.
// The last have as much under way as is to give nearly all that the device does: what messages of that size cost, though
// nothing is registered.
var deviceWays = [][2]int{{256, 6}, {1024, 4}, {4096, 2}, {16384, 1}, {64, 1}, {32, 2}, {16, 4}}

// below are the sizes up to the largest, or that.
func below(largest int64, sizes []int64) (kept []int64) {
	for _, n := range sizes {
		if n <= largest {
			kept = append(kept, n)
		}
	}
	if len(kept) == 0 {
		kept = append(kept, largest)
	}
	return kept
}

// curve sends files of some sizes.
func curve(figure, name string, w way, sizes []int64) row {
	return row{name: figure + "/" + name, measure: func(ctx context.Context, b *bench) (points []point, err error) {
		s, err := b.sender(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range below(int64(b.Largest), sizes) {
			p, err := s.measure(ctx, n, w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", report.Size(n), err)
			}
			points = append(points, p)
		}
		return points, nil
	}}
}

// bars sends one file with each number of pipes and pages. Their places stand for sizes.
func bars(figure string, strategy func(pages, pipes int) pipe.Strategy) row {
	return row{name: figure, measure: func(ctx context.Context, b *bench) (points []point, err error) {
		s, err := b.sender(ctx)
		if err != nil {
			return nil, err
		}
		n := min(bufferSize, int64(b.Largest))
		for i, each := range pipesAndPages {
			p, err := s.measure(ctx, n, way{strategy: strategy(each[1], each[0])})
			if err != nil {
				return nil, err
			}
			p.Seconds *= float64(bufferSize) / float64(n)
			p.X, p.Label = int64(i), fmt.Sprintf("%d x %d: %d", each[0], each[1], each[0]*each[1]*int(mem.PageSize)/kib)
			points = append(points, p)
		}
		return points, nil
	}}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// rows returns all rows, in the order in which a round measures them.
func rows() (all []row) {
	add := func(r ...row) { all = append(all, r...) }
	add(deviceRows()...)
	add(curve(naive, "registered", way{strategy: shaped(gib/int(mem.PageSize), 1, 0, pinwheel.LeavePinned)}, curveSizes),
		curve(naive, "one buffer", way{strategy: oneBuffer}, curveSizes),
		curve(naive, "ring", way{strategy: pipe.Static}, curveSizes),
		curve(naive, "dynamic", way{strategy: pipe.Dynamic}, curveSizes))
	for _, f := range []struct {
		pages, pipes string
		strategy     func(pages, pipes int) pipe.Strategy
	}{{pages, pipes, pipelined}, {sendfilePages, sendfilePipes, sendfile}} {
		for _, n := range pageCounts {
			add(curve(f.pages, plural(n, "page"), way{strategy: f.strategy(n, 1)}, curveSizes))
		}
		for _, n := range pipeCounts {
			add(curve(f.pipes, plural(n, "pipe"), way{strategy: f.strategy(256, n)}, curveSizes))
		}
	}
	add(bars(buffers, pipelined), bars(sendfileBufs, sendfile))
	add(registrationRows()...)
	add(strategiesTogether(allCold, true)...)
	add(strategiesTogether(allHot, false)...)
	add(getsTogether()...)
	for _, when := range []string{atOnce, later} {
		add(row{name: secondGet + "/" + when, measure: func(ctx context.Context, b *bench) ([]point, error) {
			return second(ctx, b, when == atOnce)
		}})
	}
	for _, by := range []string{files.ByRDMA, files.ByMemory, files.ByTLS} {
		add(row{name: manyGets + "/" + by, once: true, measure: func(ctx context.Context, b *bench) ([]point, error) {
			return many(ctx, b, by)
		}})
	}
	for _, w := range filesbench.Ways() {
		add(row{name: copyRow(w), measure: func(ctx context.Context, b *bench) ([]point, error) { return b.copy(ctx, w) }})
	}
	return all
}

func deviceRows() (all []row) {
	anonymous := func(name string, message int64, depth int) row {
		return row{name: name, measure: func(ctx context.Context, b *bench) ([]point, error) {
			s, err := b.sender(ctx)
			if err != nil {
				return nil, err
			}
			n := min(deviceSize, int64(b.Largest))
			p, err := s.anonymous(ctx, n, min(message, n), depth)
			return []point{p}, err
		}}
	}
	all = append(all, anonymous(device+"/anonymous", deviceSize, 1))
	for _, each := range deviceWays {
		w := way{strategy: registered(each[0], each[1])}
		all = append(all, curve(device, fmt.Sprintf("%d x %d pages", each[1], each[0]), w, []int64{deviceSize}))
	}
	for _, depth := range ownDepths {
		all = append(all, anonymous(ownRow(depth), int64(enoughBytes/depth), depth))
	}
	return all
}

// ownDepths are how many messages are under way where the device sends enoughBytes at a time without package files.
var ownDepths = []int{1, 2, 4}

func ownRow(depth int) string {
	return fmt.Sprintf("%s/anonymous, %d x %d KiB", device, depth, enoughBytes/depth/kib)
}

func registrationRows() (all []row) {
	for _, k := range kindsOfMemory {
		all = append(all, row{name: registration + "/" + k.name, measure: func(ctx context.Context, b *bench) (points []point, err error) {
			s, err := b.sender(ctx)
			if err != nil {
				return nil, err
			}
			for _, n := range below(int64(b.Largest), curveSizes) {
				p, err := s.register(k, n)
				if err != nil {
					return nil, err
				}
				points = append(points, p)
			}
			return points, nil
		}})
	}
	return all
}

// copyRow is the name of the row of a way to copy files from one place to another.
func copyRow(w filesbench.Way) string { return copies + "/" + w.What + "/" + w.Name }
