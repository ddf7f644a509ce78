package top

import (
	"fmt"
	"strconv"

	"pinwheel/internal/report"
	"pinwheel/internal/settings"
	"pinwheel/internal/tools/monitor"
	"pinwheel/mem"
)

// row is a rank as the table knows it.
type row struct {
	monitor.Rank
	rates monitor.Rates
	trend []int64
}

// column is one column of the table.
type column struct {
	title string
	// once is the title where there is but one look, and so no rate; "" leaves the column out.
	once string
	// width is the least width. Cells of the usual size fit, so that the table stays where it is.
	width int
	// rank says which columns go first where there is no room: those with the highest numbers.
	rank int
	left bool // aligned
	// shown says of which ranks there is something to show; the column is left out if there is none. nil: of all.
	shown func(r *monitor.Rank) bool
	cell  func(r *row, live bool) string
	key   func(r *row, live bool) float64 // to sort by; nil if that makes no sense
}

// columns are those of the table, from left to right. By default it is sorted by the first.
var columns = []column{
	{title: "RANK", once: "RANK", width: 4, rank: 0,
		cell: func(r *row, _ bool) string { return number(r.Rank.Rank) },
		key:  func(r *row, _ bool) float64 { return float64(r.Rank.Rank) }},
	{title: "PID", once: "PID", width: 7, rank: 10,
		cell: func(r *row, _ bool) string { return strconv.Itoa(r.PID) },
		key:  func(r *row, _ bool) float64 { return float64(r.PID) }},
	{title: "PINNED", once: "PINNED", width: 10, rank: 1,
		cell: func(r *row, _ bool) string { return bytesOf(&r.PinnedBytes) },
		key:  func(r *row, _ bool) float64 { return float64(r.PinnedBytes) }},
	{title: trendTitle, width: 8, rank: 5, left: true, // its cells depend on the width that is left
		key: func(r *row, _ bool) float64 { return float64(r.PinnedBytes) - float64(oldest(r.trend)) }},
	{title: "PEAK", once: "PEAK", width: 10, rank: 11,
		cell: func(r *row, _ bool) string { return bytesOf(&r.PeakPinnedBytes) },
		key:  func(r *row, _ bool) float64 { return float64(r.PeakPinnedBytes) }},
	{title: "SHARE", once: "SHARE", width: 10, rank: 8,
		shown: func(r *monitor.Rank) bool { return r.ShareBytes != nil },
		cell:  func(r *row, _ bool) string { return bytesOf(r.ShareBytes) },
		key:   func(r *row, _ bool) float64 { return orZero(r.ShareBytes) }},
	{title: "CORE", once: "CORE", width: 6, rank: 6,
		cell: func(r *row, _ bool) string { return core(&r.Helper) },
		key:  func(r *row, _ bool) float64 { return float64(r.Helper.CPU) }},
	{title: "HELPER", once: "HELPER", width: 6, rank: 2,
		cell: func(r *row, _ bool) string { return percent(r.rates.HelperShare, r.Helper.Running) },
		key:  func(r *row, _ bool) float64 { return r.rates.HelperShare }},
	{title: "LIMIT", once: "LIMIT", width: 5, rank: 9,
		shown: func(r *monitor.Rank) bool { return r.Helper.ShareLimit != nil },
		cell:  func(r *row, _ bool) string { return limit(&r.Helper) },
		key:   func(r *row, _ bool) float64 { return orZero(r.Helper.ShareLimit) }},
	{title: "HITS/s", once: "HITS", width: 8, rank: 4,
		cell: func(r *row, live bool) string { return count(pick(live, r.rates.Hits, r.Hits)) },
		key:  func(r *row, live bool) float64 { return pick(live, r.rates.Hits, r.Hits) }},
	{title: "LATE/s", once: "LATE", width: 6, rank: 3,
		cell: func(r *row, live bool) string { return count(pick(live, r.rates.Late, r.LateUses)) },
		key:  func(r *row, live bool) float64 { return pick(live, r.rates.Late, r.LateUses) }},
	{title: "STALL", once: "STALL", width: 6, rank: 12,
		cell: func(r *row, _ bool) string { return percent(r.rates.Stall, true) },
		key:  func(r *row, _ bool) float64 { return r.rates.Stall }},
	{title: "COST", once: "COST", width: 6, rank: 6,
		cell: func(r *row, _ bool) string { return fmt.Sprintf("%.2f %%", 100*r.rates.Cost) },
		key:  func(r *row, _ bool) float64 { return r.rates.Cost }},
	{title: "OF", once: "OF", width: 5, rank: 14,
		shown: func(r *monitor.Rank) bool { return r.Cost.Share > 0 },
		cell:  func(r *row, _ bool) string { return dash(r.Cost.Share, settings.FormatShare(r.Cost.Share)) },
		key:   func(r *row, _ bool) float64 { return r.Cost.Share }},
	{title: "PRICE", once: "PRICE", width: 6, rank: 15,
		shown: func(r *monitor.Rank) bool { return r.Cost.PriceNs > 0 },
		cell:  func(r *row, _ bool) string { return dash(r.Cost.PriceNs, fmt.Sprintf("%.1f", r.Cost.PriceNs/1e3)) },
		key:   func(r *row, _ bool) float64 { return r.Cost.PriceNs }},
	{title: "<5 %", once: "<5 %", width: 6, rank: 7,
		cell: func(r *row, _ bool) string { return report.Percent(r.Err5, r.Predictions) },
		key:  func(r *row, _ bool) float64 { return r.Err5 }},
	{title: "AGE", once: "AGE", width: 5, rank: 3,
		shown: func(r *monitor.Rank) bool { return r.AgeSeconds >= lateNews },
		cell:  func(r *row, _ bool) string { return fmt.Sprintf("%.0f s", max(r.AgeSeconds, 0)) },
		key:   func(r *row, _ bool) float64 { return r.AgeSeconds }},
	{title: "PROGRAM", once: "PROGRAM", width: 12, rank: 14, left: true,
		cell: func(r *row, _ bool) string { return r.Program }},
}

// lateNews is how many seconds of silence of a rank are worth a column.
const lateNews = 3

const trendTitle = "LAST MINUTE"

// Legend explains the columns.
const Legend = `RANK: of the MPI job, - if there is none. PINNED, PEAK: memory that is registered through Pinwheel, now and at most;
under PINWHEEL_NODE_BUDGET with what the transport registers for itself. LAST MINUTE: PINNED in that time, as a share
of PEAK. SHARE: the rank's part of PINWHEEL_NODE_BUDGET. CORE: processor of the helper thread, with * if ranks use
it, too. HELPER: processor time of the helper, registrations included, as a share of one processor, and LIMIT: how
much it may take. HITS, LATE: uses that found their buffer registered, or that had to register it again or to wait
for that. STALL: share of the time that communication waited for registrations. COST: share of the time that
a cache would have spared the rank, with the helper's on the core of the rank; OF: PINWHEEL_COST, the most that it may
be. PRICE: what saving a MiB for a second has cost lately, in us. <5 %: predictions of the next use with less than 5 %
error. AGE: how long ago the rank said so, if one is silent. On a terminal, rates are those of the last 10 s; else since
the rank's start.`

func pick(live bool, rate float64, total int64) float64 {
	if live {
		return rate
	}
	return float64(total)
}

func orZero[T int64 | float64](v *T) float64 {
	if v == nil {
		return 0
	}
	return float64(*v)
}

// dash is the text of a value, or a dash if there is none.
func dash(v float64, text string) string {
	if v == 0 {
		return "-"
	}
	return text
}

func oldest(trend []int64) int64 {
	for _, v := range trend {
		if v >= 0 {
			return v
		}
	}
	return 0
}

func number(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func bytesOf(n *int64) string {
	if n == nil {
		return "-"
	}
	return mem.FormatBytes(uint64(max(*n, 0)))
}

// count is a number of at most six digits and, from a million on, a unit.
func count(n float64) string {
	switch {
	case n < 0.05:
		return "0"
	case n < 10 && n != float64(int64(n)):
		return strconv.FormatFloat(n, 'f', 1, 64)
	case n < 999_999.5:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	unit := ""
	for _, unit = range []string{"M", "G", "T", "P"} {
		if n /= 1000; unit == "M" {
			n /= 1000
		}
		if n < 999.95 {
			break
		}
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + unit
}

func percent(share float64, known bool) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*max(share, 0))
}

func limit(h *monitor.Helper) string {
	if !h.Running || h.ShareLimit == nil {
		return "-"
	}
	return strconv.FormatFloat(100**h.ShareLimit, 'g', 3, 64) + " %"
}

func core(h *monitor.Helper) string {
	switch {
	case !h.Running:
		return "none"
	case h.Parked:
		return "parked"
	case h.CPU < 0:
		return "any"
	case h.Shared:
		return strconv.Itoa(h.CPU) + "*"
	}
	return strconv.Itoa(h.CPU)
}
