package top

import (
	"io"
	"strings"

	"pinwheel/internal/tools/monitor"
)

// Print prints one look as text. The width is that of the terminal, or 0 if there is none.
func Print(w io.Writer, l monitor.Look, width int) error {
	var h monitor.History
	h.Add(l)
	t := table{look: l, history: &h, width: width, ascii: true} // nothing in it needs more
	_, err := io.WriteString(w, strings.Join(append(t.head(), t.body()...), "\n")+"\n")
	return err
}
