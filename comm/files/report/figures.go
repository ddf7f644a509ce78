package report

import (
	"fmt"

	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/pipe/virtual"
	"pinwheel/internal/chart"
	"pinwheel/mem"
)

// line is a curve of a figure.
type line struct {
	name  string
	serve serve
	color string
	dash  string
}

var ticks = []float64{4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib}

// byBytes draws throughput over the size of the file.
func byBytes(file, title, subtitle, paper string, lines ...line) Figure {
	series := make([]chart.Series, len(lines))
	for i, l := range lines {
		s := chart.Series{Name: l.name, Color: l.color, Dash: l.dash}
		for _, n := range sizes() {
			s.X, s.Y = append(s.X, float64(n)), append(s.Y, throughput(l.serve, n))
		}
		series[i] = s
	}
	return Curves(file, title, subtitle, thePaper+paper, ticks, 1000, series...)
}

const thePaper = "The paper: "

// pages and pipes compare the numbers of one way to register.
func pages(r virtual.Registration) (lines []line) {
	for _, n := range []int64{1, 4, 16, 64, 256, 1024} {
		lines = append(lines, line{name: plural(n, "page"), serve: mapped(n, 1, r)})
	}
	return lines
}

func pipes(r virtual.Registration) (lines []line) {
	for _, n := range []int{1, 2, 4, 6} {
		lines = append(lines, line{name: plural(int64(n), "pipe"), serve: mapped(256, n, r)})
	}
	return lines
}

// buffers draws throughput of a file of 16 MiB by the memory that a connection may have registered.
func buffers(file, title, paper string, r virtual.Registration) Figure {
	s := chart.Series{Color: chart.Blue}
	var categories []string
	for _, pipes := range []int{1, 2, 4} {
		for _, pages := range []int64{4, 8, 16} {
			s.Y = append(s.Y, throughput(mapped(pages, pipes, r), 16*mib))
			total := int64(pipes) * pages * int64(mem.PageSize) / kib
			categories = append(categories, fmt.Sprintf("%d x %d: %d", pipes, pages, total))
		}
	}
	return Bars(file, title, "a file of 16 MiB", thePaper+paper, 1000, categories, s)
}

// registration draws the costs that the others use.
func registration() Figure {
	p := chart.Panel{
		XLabel: "size of the region (KiB)", YLabel: "time to register (us)", XLog: true, XUnit: kib,
		XTicks: []float64{4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib},
	}
	for _, l := range []struct {
		name, color string
		cost        virtual.Registration
	}{{"by the process", chart.Vermilion, virtual.HotI07User}, {"by the kernel", chart.Blue, virtual.HotI07Kernel}} {
		s := chart.Series{Name: l.name, Color: l.color}
		for n := int64(4 * kib); n <= 4*mib; n *= 2 {
			s.X, s.Y = append(s.X, float64(n)), append(s.Y, float64(l.cost.Register.Ns(uint64(n)/mem.PageSize))/1e3)
		}
		p.Series = append(p.Series, s)
	}
	return Figure{
		File: "9-registration", Head: "size", Label: func(x float64) string { return Size(int64(x)) },
		Note: thePaper + "The kernel has the physical addresses, and translates none. Deregistration costs the same.",
		Chart: &chart.Figure{
			Title: "Figure 9: cost of memory registration", Subtitle: "fitted; what the other figures register with",
			PanelHeight: 300, Panels: []chart.Panel{p},
		},
	}
}

// clients draws what the paper argues with and does not measure: many clients of one server.
func clients() Figure {
	counts := []int{1, 2, 4, 8, 16, 32, 64}
	throughput := chart.Panel{
		Title: "throughput of all", XLabel: "clients", YLabel: throughputLabel, XLog: true, YMax: 1000,
		XTicks: []float64{1, 2, 4, 8, 16, 32, 64},
	}
	busy := chart.Panel{
		Title: "processors busy, of two", XLabel: "clients", XLog: true, YMax: 2, XTicks: throughput.XTicks,
	}
	for _, l := range everyWay() {
		t := chart.Series{Name: l.name, Color: l.color, Dash: l.dash}
		b := t
		for _, n := range counts {
			all := together(l.serve, 4*mib, n)
			t.X, t.Y = append(t.X, float64(n)), append(t.Y, all.mibPerSec)
			b.X, b.Y = append(b.X, float64(n)), append(b.Y, all.processors)
		}
		throughput.Series, busy.Series = append(throughput.Series, t), append(busy.Series, b)
	}
	return Figure{
		File: "clients", Head: "clients", Label: func(x float64) string { return fmt.Sprint(int(x)) },
		Note: thePaper + "No figure: section 3.2 says that copies and registrations limit a server of many clients.",
		Chart: &chart.Figure{
			Title: "Many clients, each with a file of 4 MiB", Subtitle: "they share two processors, the memory bus and the wire",
			Columns: 2, PanelWidth: 440, PanelHeight: 300, Panels: []chart.Panel{throughput, busy},
		},
	}
}

// everyWay are the ways of Figure 10, and ours.
func everyWay() []line {
	return []line{
		{"static", static, chart.Orange, ""},
		{"dynamic", dynamic, chart.Vermilion, ""},
		{"pipelined", pipelined, chart.Green, ""},
		{"sendfile in the kernel", sendfile, chart.Blue, ""},
		{"auto, hot file", by(pipe.Auto, true), chart.Black, "2 2"},
	}
}

// figures draw all of the page.
var figures = []func() Figure{
	func() Figure {
		return byBytes("2-naive", "Figure 2: the naive approach", "one message for the whole file, except with the ring",
			"Static is good up to 64 kB, then the memory bus limits it. Dynamic is low for small messages and rises.",
			line{"no copy, no registration", wireOnly, chart.Grey, "6 3"},
			line{"static, one buffer", oneBuffer, chart.Orange, ""},
			line{"static, ring of 2 x 64 KiB", static, chart.Orange, "2 2"},
			line{"dynamic", dynamic, chart.Vermilion, ""})
	},
	func() Figure {
		return byBytes("3-pages", "Figure 3: pages in a message, user space", "one pipe",
			"Large messages pay.", pages(virtual.HotI07User)...)
	},
	func() Figure {
		return byBytes("4-pipes", "Figure 4: number of pipes, user space", "256 pages in a message",
			"Two pipes are enough for much more throughput.", pipes(virtual.HotI07User)...)
	},
	func() Figure {
		return byBytes("5-sendfile-pages", "Figure 5: pages in a message, sendfile in the kernel", "one pipe",
			"As Figure 3, but a message need not be as large for the same throughput.", pages(virtual.HotI07Kernel)...)
	},
	func() Figure {
		return byBytes("6-sendfile-pipes", "Figure 6: number of pipes, sendfile in the kernel", "256 pages in a message",
			"A second pipe gains much less than in user space.", pipes(virtual.HotI07Kernel)...)
	},
	func() Figure {
		return buffers("7-buffers", "Figure 7: buffers of one connection, user space",
			"32 and 64 KB: 200 to just over 400 MB/s. 128 KB with two pipes: nearly 700. 256 KB: slightly more than 700.",
			virtual.HotI07User)
	},
	func() Figure {
		return buffers("8-sendfile-buffers", "Figure 8: buffers of one connection, sendfile in the kernel",
			"As Figure 7, and full throughput with 256 KB.", virtual.HotI07Kernel)
	},
	registration,
	func() Figure {
		return byBytes("10-all", "Figure 10: all ways to serve a file", "6 pipes of 256 pages where there are several",
			"Dynamic ends at 700 MB/s. Pipelined is the same up to 1 MB, and better beyond. Sendfile is ahead from 256 kB.",
			everyWay()...)
	},
	clients,
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
