package top

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"pinwheel/internal/tools/monitor"
)

// Show shows the node on the terminal that in and out are, until the user quits or the context ends, and takes
// a look at it every interval. It returns the error of a look that failed, which ends it, too. The terminal is then
// as it was before.
func Show(ctx context.Context, in io.Reader, out io.Writer, source monitor.Source,
	first monitor.Look, every time.Duration) error {
	s := newScreen(source, every, os.Getenv)
	s.update(first)
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil // which killed it
	}
	if s.failed != nil {
		return s.failed
	}
	return err
}

// screen is the view on a terminal. It implements tea.Model, which calls it from one goroutine.
type screen struct {
	source monitor.Source
	every  time.Duration
	table
	height  int
	history monitor.History
	top     int // the first line of the body that is shown
	failed  error
}

func newScreen(source monitor.Source, every time.Duration, getenv func(string) string) *screen {
	s := &screen{source: source, every: every, table: table{width: 80, live: true, ascii: !isUTF8(getenv)}, height: 24}
	s.table.history = &s.history
	return s
}

// isUTF8 reports whether the locale of the terminal has the characters of blocks: locale(7).
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// looked is the message of a look.
type looked struct {
	look monitor.Look
	err  error
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return s.wait() }

// wait takes the next look when it is time.
func (s *screen) wait() tea.Cmd {
	return tea.Tick(s.every, func(time.Time) tea.Msg {
		l, err := s.source()
		return looked{l, err}
	})
}

// Update implements tea.Model.
func (s *screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case looked:
		if s.failed = m.err; m.err != nil {
			return s, tea.Quit
		}
		s.update(m.look)
		return s, s.wait()
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		return s, s.press(m.String())
	}
	return s, nil
}

func (s *screen) update(l monitor.Look) {
	s.look = l
	s.history.Add(l)
}

// press does what a key stands for.
func (s *screen) press(key string) tea.Cmd {
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "left":
		s.sortBy(-1)
	case "right":
		s.sortBy(1)
	case "r":
		s.reverse = !s.reverse
	case "up":
		s.top--
	case "down":
		s.top++
	case "pgup":
		s.top -= s.room()
	case "pgdown":
		s.top += s.room()
	case "home":
		s.top = 0
	case "end":
		s.top = len(s.body())
	}
	s.top = min(max(s.top, 0), max(len(s.body())-s.room(), 0))
	return nil
}

// sortBy sorts by the next column to the left or to the right.
func (s *screen) sortBy(step int) {
	cols := slices.DeleteFunc(s.fit(), func(c fitted) bool { return c.key == nil })
	at := slices.IndexFunc(cols, func(c fitted) bool { return c.index == s.sort })
	s.sort = cols[(max(at, 0)+step+len(cols))%len(cols)].index
}

// What is on the screen beside the body: two lines of the head, and one of the keys.
const otherLines = 3

func (s *screen) room() int { return max(s.height-otherLines, 1) }

const inverse, normal = "\x1b[7m", "\x1b[m" // SGR of ECMA-48

// View implements tea.Model.
func (s *screen) View() tea.View {
	v := tea.NewView(s.picture())
	v.AltScreen = true
	return v
}

func (s *screen) picture() string {
	lines, body := s.head(), s.body()
	if len(s.look.Jobs)+len(s.look.VMMC)+len(s.look.Files) == 0 {
		body = append([]string{"no job at the moment"}, body...)
	}
	titles := lines[1] + strings.Repeat(" ", max(s.width-len([]rune(lines[1])), 0))
	lines[1] = inverse + titles + normal
	top := min(s.top, max(len(body)-s.room(), 0))
	lines = append(lines, body[top:min(top+s.room(), len(body))]...)
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	by := columns[s.sort].title
	if s.reverse {
		by += ", reversed"
	}
	keys := "q quit  </> sort (" + by + ")  r reverse"
	if len(body) > s.room() {
		keys += "  ^/v scroll"
	}
	if !s.ascii {
		keys = strings.NewReplacer("</>", "←/→", "^/v", "↑/↓").Replace(keys)
	}
	return strings.Join(append(lines, s.cut(keys)), "\n")
}
