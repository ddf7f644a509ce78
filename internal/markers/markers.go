// Package markers replaces the part of a document that lies between two marker
// lines, so that what is generated can live in a file that people write.
package markers

import (
	"fmt"
	"strings"
)

// Markers are the lines around the generated part, each with its newline.
type Markers struct{ Begin, End string }

// Between returns the text between the markers. It fails if they are not
// there in their order.
func (m Markers) Between(doc string) (string, error) {
	_, text, _, err := m.cut(doc)
	return text, err
}

// Replace returns doc with text between the markers. It fails if they are
// not there in their order.
func (m Markers) Replace(doc, text string) (string, error) {
	before, _, after, err := m.cut(doc)
	if err != nil {
		return "", err
	}
	return before + m.Begin + text + m.End + after, nil
}

func (m Markers) cut(doc string) (before, text, after string, err error) {
	before, rest, ok := strings.Cut(doc, m.Begin)
	text, after, ok2 := strings.Cut(rest, m.End)
	if !ok || !ok2 {
		return "", "", "", fmt.Errorf("the document lacks the lines %q and %q", strings.TrimSpace(m.Begin), strings.TrimSpace(m.End))
	}
	return before, text, after, nil
}
