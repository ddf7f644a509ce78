package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// A page is a file of Markdown.
type page struct {
	lines []string // as they are
	prose []string // the same lines, those of code empty
}

func parse(text string) page {
	p := page{lines: strings.Split(text, "\n")}
	fenced, indented, blank := false, false, true
	for _, line := range p.lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		indented = strings.HasPrefix(line, "    ") && (blank || indented)
		if fenced || fence || indented {
			p.prose = append(p.prose, "")
		} else {
			p.prose = append(p.prose, line)
		}
		fenced = fenced != fence
		blank = strings.TrimSpace(line) == ""
	}
	return p
}

var (
	codeSpan = regexp.MustCompile("(?s)`[^`]+`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	ownID    = regexp.MustCompile(`<a id="([^"]+)">`)
)

// links returns where the page links to inside the repository.
func (p page) links() (targets []string) {
	text := codeSpan.ReplaceAllString(strings.Join(p.prose, "\n"), "")
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// slugs returns the anchors of the page's headings as forges make them: for each line that is one.
func (p page) slugs() map[int]string {
	slugs, used := map[int]string{}, map[string]int{}
	for n, line := range p.prose {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		s := slug(m[1])
		if again := used[s]; again > 0 {
			slugs[n] = fmt.Sprintf("%s-%d", s, again)
		} else {
			slugs[n] = s
		}
		used[s]++
	}
	return slugs
}

// anchors returns all anchors of the page.
func (p page) anchors() map[string]bool {
	all := map[string]bool{}
	for _, s := range p.slugs() {
		all[s] = true
	}
	for _, m := range ownID.FindAllStringSubmatch(strings.Join(p.prose, "\n"), -1) {
		all[m[1]] = true
	}
	return all
}

// slug returns the anchor of a heading.
func slug(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
