// Package console writes lines for people: none of them is a command of a terminal, and none ends the process.
package console

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable returns a text that is one line and no command of a terminal: what can't be printed is as in a literal of
// Go or C, \n or \x1b. All else stays.
func Printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || !strconv.IsPrint(r) {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}
