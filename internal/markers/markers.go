// Package markers replaces the part of a document between two marker lines. So a
// generated part can live in a file that people write.
package markers

import (
	"fmt"
	"os"
	"strings"

	"pinwheel/internal/outfile"
)

// Markers are the lines around the generated part, each with its newline.
type Markers struct{ Begin, End string }

// Between returns the text between the markers. It fails if they are not
// there in their order.
func (m Markers) Between(doc string) (string, error) {
	p, err := m.cut(doc)
	return p.between, err
}

// Replace returns doc with text between the markers. It fails if they are
// not there in their order.
func (m Markers) Replace(doc, text string) (string, error) {
	p, err := m.cut(doc)
	if err != nil {
		return "", err
	}
	return p.before + m.Begin + text + m.End + p.after, nil
}

// Into puts text between the markers of a file.
func (m Markers) Into(file, text string) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	replaced, err := m.Replace(string(doc), text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return outfile.WriteText(file, replaced)
}

// parts are those of a document around its markers.
type parts struct{ before, between, after string }

func (m Markers) cut(doc string) (p parts, err error) {
	before, rest, hasBegin := strings.Cut(doc, m.Begin)
	between, after, hasEnd := strings.Cut(rest, m.End)
	if !hasBegin || !hasEnd {
		return parts{},
			fmt.Errorf("the document lacks the lines %q and %q", strings.TrimSpace(m.Begin), strings.TrimSpace(m.End))
	}
	return parts{before, between, after}, nil
}
