package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeBlock is a block of source code on a page, with the comment before it that says of which file it is.
var codeBlock = regexp.MustCompile("(?ms)^(?:<!-- from (\\S+) -->\n)?```(?:c|go)\n(.*?)^```$")

// staleListings returns what is wrong with the listings of a page, and how many there are.
func staleListings(t *testing.T, root, text string) (wrong []string, n int) {
	t.Helper()
	for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
		n++
		first, _, _ := strings.Cut(m[2], "\n")
		if m[1] == "" {
			wrong = append(wrong, "no file is named: "+first)
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+string(source), "\n"+m[2]) {
			wrong = append(wrong, m[1]+" has no such lines: "+first)
		}
	}
	return wrong, n
}

func TestListingsAreThoseOfTheSourceCode(t *testing.T) {
	names, err := pagesOf("../..")
	if err != nil {
		t.Fatal(err)
	}
	listings := 0
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		wrong, n := staleListings(t, "../..", string(text))
		listings += n
		for _, w := range wrong {
			t.Errorf("%s: %s", name, w)
		}
	}
	if listings < 20 {
		t.Errorf("only %d listings were found", listings)
	}
}

func TestAStaleListingIsFound(t *testing.T) {
	dir := tree(t, map[string]string{"a.c": "int a;\nint b;\nint c;\n"})
	text := "<!-- from a.c -->\n```c\nint a;\nint b;\n```\n\n```text\nfree\n```\n\n" +
		"<!-- from a.c -->\n```c\nint a;\nint c;\n```\n\n```go\nvar x int\n```\n\n<!-- from a.c -->\n```c\nnt a;\n```\n"
	wrong, n := staleListings(t, dir, text)
	want := []string{"a.c has no such lines: int a;", "no file is named: var x int", "a.c has no such lines: nt a;"}
	if n != 4 || strings.Join(wrong, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d listings, %q", n, wrong)
	}
}
