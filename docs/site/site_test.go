package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	links, err := brokenLinks("../..")
	if err != nil {
		t.Error(err)
	}
	if links < 150 {
		t.Errorf("only %d links were found", links)
	}
}

// tree makes files below a directory for a test.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := write(dir, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestALinkThatLeadsNowhereIsFound(t *testing.T) {
	dir := tree(t, map[string]string{
		"README.md": "# A `b`, c_d\n\n[1](docs/x.md#y-z) [2](#a-b-c_d) [3](docs) [4](https://example.org/none)\n\n    [code](none)\n\n`[code](none)`\n\n" +
			"```\n[code](none)\n```\n\n[first](none.md)\n[second](docs/x.md#none)\n[third](../out)\n[fourth](#own)\n",
		"docs/x.md":   "## Y & z\n## Y z\n<a id=\"own\"></a>\n[up](../README.md) [5](#own) [6](#y--z) [7](#y-z)\n",
		"out/none.md": "[not looked at](none)",
	})
	links, err := brokenLinks(dir)
	if err == nil || links != 11 {
		t.Fatalf("%d links, %v", links, err)
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		"README.md: none.md leads nowhere",
		"README.md: docs/x.md#none: docs/x.md has no such anchor",
		"README.md: ../out leads out of the repository",
		"README.md: #own: README.md has no such anchor",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestHeadingsOfOneNameHaveAnchorsOfTheirOwn(t *testing.T) {
	got := slices.Sorted(maps.Keys(parse("# Use\n\n## [Use](x.md)\n\n### Use it: *now*\n").anchors()))
	if want := []string{"use", "use-1", "use-it-now"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestTheStageHasAllThatPagesLinkTo(t *testing.T) {
	dir := tree(t, map[string]string{
		"README.md": "# Title\n<!-- marker -->\n| a |\n|---|\n\n[source](src/a.c) [all](src) [results](results/)\n\n    # no heading\n",
		"src/a.c":   "int a;", "src/b.c": "int b;", "results/README.md": "# Results\n", "results/data.json": "{}",
	})
	out := t.TempDir()
	if err := stage(dir, out); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	want := "# Title {#title}\n\n| a |\n|---|\n\n[source](src/a.c.txt) [all](src/README.md) [results](results/README.md)\n\n    # no heading\n"
	if got := read("README.md"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if read("src/a.c.txt") != "int a;" || read("src/b.c.txt") != "int b;" || !strings.Contains(read("src/README.md"), "[b.c](b.c.txt)") {
		t.Error("the linked directory is not whole")
	}
	if _, err := os.Stat(filepath.Join(out, "results/data.json")); err == nil {
		t.Error("what nobody links to was copied")
	}
}

func TestWhatTheSiteLacksIsFound(t *testing.T) {
	good := map[string]string{
		"index.html":  `<h1 id="top">x</h1><a href="#top">1</a><a class="x" href="docs/a.html#b">2</a><a href="https://example.org">3</a>`,
		"docs/a.html": `<a id="b"></a><img alt="" src="../f.svg"><link href="../x.css" rel="stylesheet">`,
		"f.svg":       "<svg/>", "x.css": "a { background: url(f.svg) }",
	}
	if err := check(tree(t, good)); err != nil {
		t.Errorf("a good site: %v", err)
	}
	for what, change := range map[string][2]string{
		"index.html: none.html leads nowhere":                           {"index.html", `<a href="none.html">x</a>`},
		"index.html: docs/a.html#c: there is no such anchor":            {"index.html", `<a href="docs/a.html#c">x</a>`},
		"index.html: //cdn.example/x.js would be loaded from elsewhere": {"index.html", `<script src="//cdn.example/x.js"></script>`},
		"x.css loads from elsewhere":                                    {"x.css", `@font-face { src: url("https://cdn.example/f") }`},
		"has no index.html":                                             {"index.html", ""},
	} {
		bad := maps.Clone(good)
		bad[change[0]] = change[1]
		if err := check(tree(t, bad)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, not %q", err, what)
		}
	}
}
