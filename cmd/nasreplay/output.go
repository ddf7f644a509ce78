package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"

	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
)

// format are the flags of every command that prints results.
type format struct {
	JSON bool `name:"json" xor:"format" help:"Print one JSON object per line."`
	CSV  bool `name:"csv" xor:"format" help:"Print comma-separated values with a header line."`
}

// table collects rows and prints them with aligned columns. A column whose
// header begins with > is aligned to the right.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer, indent string) error {
	width := make([]int, len(t.header))
	head := make([]string, len(t.header))
	for i, h := range t.header {
		head[i] = strings.TrimPrefix(h, ">")
	}
	for _, row := range append([][]string{head}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{head}, t.rows...) {
		line := indent
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if strings.HasPrefix(t.header[i], ">") {
				line += pad + c + "  "
			} else {
				line += c + pad + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeCSV prints the table as comma-separated values.
func (t *table) writeCSV(w io.Writer, withHeader bool) error {
	cw := csv.NewWriter(w)
	if withHeader {
		if err := cw.Write(t.header); err != nil {
			return err
		}
	}
	return cw.WriteAll(t.rows) // flushes
}

// writeJSON prints one object on a line of its own.
func writeJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// formatNs prints a duration with three digits: "1.23 ms".
func formatNs(ns int64) string {
	v, unit := float64(ns), "ns"
	for _, u := range []string{"us", "ms", "s"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	switch {
	case unit == "ns" || v >= 99.95:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 9.995:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

// wrote says what was written to a file, unless that is standard output.
func wrote(e *command.Env, path, format string, args ...any) error {
	if outfile.ToStdout(path) {
		return nil
	}
	_, err := fmt.Fprintf(e.Stdout, "%s: %s\n", path, fmt.Sprintf(format, args...))
	return err
}

// progress shows a bar on stderr if that is a terminal, else nothing.
// Add may be called from several goroutines.
func progress(e *command.Env, total int64, what string) *progressbar.ProgressBar {
	// Without a spinner interval the bar has no goroutine, which would race with Add.
	return progressbar.NewOptions64(total, progressbar.OptionSetWriter(e.Stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionSetVisibility(e.Terminal), progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
}
