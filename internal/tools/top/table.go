package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/tools/monitor"
	"pinwheel/mem"
)

// table writes a look at the node as lines of text.
type table struct {
	look    monitor.Look
	history *monitor.History
	width   int  // columns of the terminal; 0: as wide as it gets
	live    bool // there are more looks to come, so there are rates and trends
	ascii   bool // the terminal may know nothing else
	sort    int  // index in columns
	reverse bool
}

// head returns the line about the node, and that of the titles.
func (t *table) head() []string {
	ranks, pinned := t.look.Ranks()
	node := fmt.Sprintf("pinwheel on %s, %s: %s of %s, %s pinned", t.look.Host, t.look.Time.Format("15:04:05"),
		plural(ranks, "rank"), plural(len(t.look.Jobs), "job"), mem.FormatBytes(uint64(max(pinned, 0))))
	titles := t.line(t.fit(), func(c *fitted) string { return c.name })
	if ranks == 0 {
		titles = t.cut("no process has registered memory under Pinwheel (yet)")
	}
	return []string{t.cut(node), titles}
}

// body returns the lines of the jobs and their ranks.
func (t *table) body() (lines []string) {
	cols := t.fit()
	for i := range t.look.Jobs {
		j := &t.look.Jobs[i]
		lines = append(lines, t.cut(jobLine(j)))
		for _, r := range t.rows(j) {
			lines = append(lines, t.line(cols, func(c *fitted) string {
				if c.cell == nil {
					return t.trend(r.trend[len(r.trend)-c.width:], r.PeakPinnedBytes)
				}
				return c.cell(&r, t.live)
			}))
		}
	}
	for _, u := range t.look.Unreadable {
		lines = append(lines, t.cut(fmt.Sprintf("job %s: %s", u.ID, u.Error)))
	}
	for i := range t.look.VMMC {
		lines = append(lines, t.cut(processLine(&t.look.VMMC[i])))
	}
	for i := range t.look.Files {
		lines = append(lines, t.cut(serverLine(&t.look.Files[i])))
	}
	return lines
}

// processLine tells what a process with a name exports and imports.
func processLine(p *broker.Process) string {
	line := fmt.Sprintf("vmmc %s (process %d): ", p.Name, p.PID)
	if p.Error != "" {
		return line + p.Error
	}
	s := p.Sum()
	return line +
		fmt.Sprintf("%s of %s, %s, %s pinned, %s received; %s, %s of %s; %d queued; %s", plural(s.Exports, "export"),
			mem.FormatBytes(s.ExportedBytes), plural(s.Importers, "importer"), mem.FormatBytes(s.PinnedBytes),
			mem.FormatBytes(p.Total.ReceivedBytes),
			plural(s.Imports, "import"), plural(int(p.Total.Sends), "send"), mem.FormatBytes(p.Total.SentBytes),
			s.Queued, plural(int(p.Total.Errors+p.Total.Refused+p.Total.Violations), "error"))
}

// serverLine tells what a server of files has and does.
func serverLine(s *files.ServerInfo) string {
	line := fmt.Sprintf("files %s (process %d): ", s.Dir, s.PID)
	if s.Error != "" {
		return fmt.Sprintf("files (process %d): ", s.PID) + s.Error
	}
	return line + fmt.Sprintf("%s, %s sent, %s received, %s pinned of %s; %s, %s", plural(s.Clients, "client"),
		mem.FormatBytes(uint64(s.BytesSent)), mem.FormatBytes(uint64(s.BytesReceived)),
		mem.FormatBytes(uint64(s.PinnedBytes)), mem.FormatBytes(uint64(s.BudgetBytes)),
		plural(int(s.Requests), "request"), plural(int(s.Errors), "error"))
}

func jobLine(j *monitor.Job) string {
	line := fmt.Sprintf("job %s: %s, %s pinned", j.ID, plural(len(j.Ranks), "rank"),
		mem.FormatBytes(uint64(max(j.PinnedBytes, 0))))
	if b := j.BudgetBytes; b != nil {
		line += fmt.Sprintf(" of a node budget of %s", mem.FormatBytes(uint64(max(*b, 0))))
		if *b > 0 {
			line += fmt.Sprintf(" (%.0f %%)", 100*float64(j.PinnedBytes)/float64(*b))
		}
	}
	return line
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// rows returns the ranks of a job in the order of the table.
func (t *table) rows(j *monitor.Job) []row {
	var rows []row
	cols := t.fit()
	at := slices.IndexFunc(cols, func(c fitted) bool { return c.cell == nil })
	for i := range j.Ranks {
		r := row{Rank: j.Ranks[i], rates: t.history.Rates(j.ID, &j.Ranks[i])}
		if at >= 0 {
			r.trend = t.history.Trend(j.ID, &j.Ranks[i], cols[at].width)
		}
		rows = append(rows, r)
	}
	by := &columns[t.sort]
	slices.SortStableFunc(rows, func(a, b row) int {
		order := cmp.Compare(by.key(&a, t.live), by.key(&b, t.live))
		if t.sort == 0 == t.reverse { // ranks from the lowest, all else from the highest
			order = -order
		}
		return order
	})
	return rows
}

// fitted is a column that is shown.
type fitted struct {
	*column
	name  string // its title
	index int    // in columns
	width int
}

// most is how wide the trend gets: a second for each column.
const most = monitor.Kept

// fit returns the columns that there is room for. The trend gets what is left, and the program what is left then.
func (t *table) fit() (cols []fitted) {
	for i := range columns {
		c := &columns[i]
		name := c.title
		if !t.live {
			name = c.once
		}
		if name != "" && t.anyShown(c) {
			cols = append(cols, fitted{c, name, i, c.width})
		}
	}
	left := func() int {
		n := t.width + 1
		for _, c := range cols {
			n -= c.width + 1
		}
		return n
	}
	for t.width > 0 && left() < 0 && len(cols) > 1 {
		last := slices.MaxFunc(cols, func(a, b fitted) int { return cmp.Compare(a.rank, b.rank) })
		cols = slices.DeleteFunc(cols, func(c fitted) bool { return c.rank == last.rank })
	}
	for i := range cols {
		switch c := &cols[i]; {
		case c.cell == nil:
			c.width += min(left(), most-c.width)
			if c.width < len(c.name) {
				c.name = "TREND"
			}
		case i == len(cols)-1 && c.left && t.width > 0:
			c.width += left()
		}
	}
	return cols
}

// anyShown reports whether a column has something to show.
func (t *table) anyShown(c *column) bool {
	if c.shown == nil {
		return true
	}
	for _, j := range t.look.Jobs {
		for i := range j.Ranks {
			if c.shown(&j.Ranks[i]) {
				return true
			}
		}
	}
	return false
}

// line joins the cells of the columns.
func (t *table) line(cols []fitted, cell func(*fitted) string) string {
	var b strings.Builder
	for i := range cols {
		c := &cols[i]
		text := cell(c)
		pad := strings.Repeat(" ", max(c.width-utf8.RuneCountInString(text), 0))
		if i > 0 {
			b.WriteByte(' ')
		}
		if c.left {
			b.WriteString(text + pad)
		} else {
			b.WriteString(pad + text)
		}
	}
	return t.cut(strings.TrimRight(b.String(), " "))
}

// cut makes a line fit.
func (t *table) cut(line string) string {
	if t.width == 0 || utf8.RuneCountInString(line) <= t.width {
		return line
	}
	end := "…"
	if t.ascii {
		end = ">"
	}
	return string([]rune(line)[:max(t.width-1, 0)]) + end
}

// Bars of a trend, from the lowest to the highest.
var (
	blocks = []rune("▁▂▃▄▅▆▇█")
	marks  = []rune("_.-:=+*#")
)

// trend draws values as bars, with peak as the highest. What is not known is left free.
func (t *table) trend(values []int64, peak int64) string {
	bars := blocks
	if t.ascii {
		bars = marks
	}
	var b strings.Builder
	for _, v := range values {
		if v < 0 {
			b.WriteByte(' ')
			continue
		}
		level := 0
		if peak > 0 {
			level = int(float64(v) / float64(peak) * float64(len(bars)-1))
			if v > 0 {
				level = max(level, 1)
			}
		}
		b.WriteRune(bars[min(level, len(bars)-1)])
	}
	return b.String()
}
