package messages

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	cCall    = regexp.MustCompile(`\b(?:pw_warn|watchWarn)\(`)
	cLiteral = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
)

// cMessages returns what the C files of a directory print: the format of each call of pw_warn, and the sentences among
// its other arguments.
func cMessages(t *testing.T, root, dir string) (found []source) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.[ch]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		where, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range cCall.FindAllIndex(src, -1) {
			for i, text := range argumentTexts(t, string(src[at[1]:])) {
				if text = plainText(text); text != "" && (i == 0 || strings.Count(text, " ") >= 3) {
					found = append(found, source{text, where})
				}
			}
		}
	}
	return found
}

// argumentTexts returns the string literals in the arguments with which C code begins; those side by side are one.
func argumentTexts(t *testing.T, code string) (texts []string) {
	t.Helper()
	joins := false
	for depth := 1; depth > 0 && code != ""; {
		switch l := cLiteral.FindString(code); {
		case l != "":
			s, err := strconv.Unquote(l)
			if err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			if joins {
				texts[len(texts)-1] += s
			} else {
				texts = append(texts, s)
			}
			joins, code = true, code[len(l):]
			continue
		case code[0] == '(':
			depth++
		case code[0] == ')':
			depth--
		}
		joins = joins && strings.ContainsRune(" \t\n", rune(code[0]))
		code = code[1:]
	}
	return texts
}
