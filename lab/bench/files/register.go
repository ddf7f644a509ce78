package main

import (
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/report"
	"pinwheel/internal/chart"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// kindOfMemory is what is registered.
type kindOfMemory struct {
	name string
	file bool // a shared read-only mapping of a file in the page cache
	cold bool // mapped for each registration anew
}

var kindsOfMemory = []kindOfMemory{
	{"anonymous", false, false}, {"mapped, populated", true, false}, {"mapped, cold", true, true},
}

// register measures the registration of n bytes, and its end.
func (s *sender) register(k kindOfMemory, n int64) (point, error) {
	p := point{X: n}
	provider, err := s.node.Provider()
	if err != nil {
		return p, err
	}
	f, err := s.tree.open(n, 0, 1)
	if err != nil {
		return p, err
	}
	defer f.close()
	var memory []byte
	var register, deregister time.Duration
	for began := time.Now(); p.N == 0 || time.Since(began) < s.slice; p.N++ {
		if memory == nil {
			if memory, err = k.mapped(f[0], n); err != nil {
				return p, err
			}
		}
		begun := time.Now()
		g, err := provider.Register(mem.RangeOf(memory), verbs.Access(0))
		registered := time.Now()
		if err == nil {
			err = provider.Deregister(g)
		}
		register, deregister = register+registered.Sub(begun), deregister+time.Since(registered)
		if k.cold || err != nil {
			err = errors.Join(err, unix.Munmap(memory))
			memory = nil
		}
		if err != nil {
			return p, err
		}
	}
	count := float64(p.N)
	p.Seconds, p.Deregister = register.Seconds()/count, deregister.Seconds()/count
	if memory != nil {
		err = unix.Munmap(memory)
	}
	return p, err
}

// mapped maps n bytes, and has their pages in the page table unless they are to be cold.
func (k kindOfMemory) mapped(f *os.File, n int64) ([]byte, error) {
	fd, prot, flags := -1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS
	advice := unix.MADV_POPULATE_WRITE // Linux 5.14, as the other one
	if k.file {
		fd, prot, flags, advice = int(f.Fd()), unix.PROT_READ, unix.MAP_SHARED, unix.MADV_POPULATE_READ
	}
	memory, err := unix.Mmap(fd, 0, int(n), prot, flags)
	if err == nil && !k.cold {
		err = unix.Madvise(memory, advice)
	}
	return memory, err
}

// registration draws what registrations take, for a directory of pictures.
func (s *state) registration(dir string) (report.Figure, bool) {
	var rows []drawn
	for i, k := range kindsOfMemory {
		rows = append(rows, drawn{row: registration + "/" + k.name, name: k.name, color: chart.Palette[i]})
	}
	series := s.series(rows, func(p *point) float64 { return p.Seconds * 1e6 })
	ticks := curveTicks
	if len(series) > 0 {
		largest := slices.Max(append(series[0].X, 0))
		ticks = slices.DeleteFunc(slices.Clone(ticks), func(x float64) bool { return x > largest })
	}
	return report.Figure{
		File: dir + "/" + registration, Head: "size", Label: func(x float64) string { return report.Size(int64(x)) },
		Note: "The paper: registration and deregistration cost the same, and the kernel saves the translation.",
		Chart: &chart.Figure{
			Title: "Figure 9: cost of memory registration", Subtitle: "without deregistration", PanelHeight: 300,
			Panels: []chart.Panel{{
				XLabel: "size of the region (KiB)", YLabel: "time to register (us)", XLog: true, XUnit: kib, XTicks: ticks,
				Series: series,
			}},
		},
	}, len(series) > 0
}
