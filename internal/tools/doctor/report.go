package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Status of a finding.
type Status string

// Statuses, from good to bad.
const (
	OK      Status = "ok"
	Note    Status = "note"    // works without it
	Problem Status = "problem" // needed and missing
)

// Finding is one answer.
type Finding struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Value   string `json:"value"`
	Advice  string `json:"advice,omitempty"` // what to do
}

// Report is everything that was found, in order.
type Report struct {
	Version  string    `json:"version"`
	Usable   bool      `json:"usable"` // no problem among the findings
	Findings []Finding `json:"findings"`
}

// WriteJSON prints the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText prints the report for people: the findings, and what follows.
func (r *Report) WriteText(w io.Writer) error {
	if err := r.WriteFindings(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+r.verdict()+"\n")
	return err
}

// WriteFindings prints the findings by section, with what needs doing marked
// and below.
func (r *Report) WriteFindings(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Pinwheel %s\n", r.Version)
	width, section := 0, ""
	for _, f := range r.Findings {
		width = max(width, len(f.Name))
	}
	for _, f := range r.Findings {
		if f.Section != section {
			section = f.Section
			fmt.Fprintf(&b, "\n%s\n", section)
		}
		mark := map[Status]string{OK: " ", Note: "-", Problem: "!"}[f.Status]
		indent := strings.Repeat(" ", 2+2+width+2)
		fmt.Fprintf(&b, "  %s %-*s  %s\n", mark, width, f.Name, strings.ReplaceAll(f.Value, "\n", "\n"+indent))
		if f.Advice != "" {
			fmt.Fprintf(&b, "%s-> %s\n", indent, f.Advice)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) verdict() string {
	problems := 0
	for _, f := range r.Findings {
		if f.Status == Problem {
			problems++
		}
	}
	switch {
	case r.Usable:
		return "Pinwheel can be used here."
	case problems == 1:
		return "Pinwheel can't be used here: there is a problem, marked by !"
	}
	return fmt.Sprintf("Pinwheel can't be used here: there are %d problems, marked by !", problems)
}

// section collects the findings of one section.
type section struct {
	name     string
	findings []Finding
}

func (s *section) add(status Status, name, advice, format string, args ...any) {
	s.findings = append(s.findings, Finding{s.name, name, status, fmt.Sprintf(format, args...), advice})
}
