package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stage copies the pages of a repository into a directory, and all that they link to, so that MkDocs finds it below one
// directory.
func stage(root, dir string) error {
	names, err := pagesOf(root)
	if err != nil {
		return err
	}
	pages := map[string]page{}
	for _, name := range names {
		if pages[name], err = readPage(root, name); err != nil {
			return err
		}
	}
	files, dirs, err := linked(root, pages)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		index := path.Join(d, "README.md")
		if _, has := pages[index]; has {
			continue
		}
		text, inside, err := listing(root, d)
		if err != nil {
			return err
		}
		pages[index], files = parse(text), append(files, inside...)
	}
	for name, p := range pages {
		if err := write(dir, name, []byte(forMkDocs(name, p, dirs))); err != nil {
			return err
		}
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = write(dir, served(name), content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func write(dir, name string, content []byte) error {
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// served returns the name that a file has on the site: source code is text there, which browsers show, and no package for
// the Go command, which looks at all below this repository.
func served(name string) string {
	switch path.Ext(name) {
	case ".svg", ".png", ".json", ".txt", ".md":
		return name
	}
	return name + ".txt"
}

// listing is a page with the files of a directory that has no page of its own.
func listing(root, dir string) (text string, files []string, err error) {
	text = "# " + dir + "\n\n"
	err = fs.WalkDir(os.DirFS(root), dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
			below := strings.TrimPrefix(name, dir+"/")
			text += fmt.Sprintf("- [%s](%s)\n", below, served(below))
		}
		return err
	})
	return text, files, err
}

var comment = regexp.MustCompile(`^<!--.*-->$`)

// forMkDocs returns the text of a page for Python-Markdown, which differs from what forges read: headings get the anchors
// that they have there, a comment does not end a table, a directory is its page, and files have the names of served.
func forMkDocs(name string, p page, dirs []string) string {
	slugs := p.slugs()
	var lines []string
	for n, line := range p.lines {
		if s, ok := slugs[n]; ok {
			line = strings.TrimRight(line, " #") + " {#" + s + "}"
		}
		if p.prose[n] != "" && comment.MatchString(line) {
			line = ""
		}
		if p.prose[n] != "" {
			line = link.ReplaceAllStringFunc(line, func(l string) string {
				to := strings.TrimSuffix(strings.TrimPrefix(l, "]("), ")")
				at, _ := target(name, to)
				switch {
				case slices.Contains(dirs, at):
					return "](" + path.Join(to, "README.md") + ")"
				case strings.ContainsAny(to, ":#"): // elsewhere, or a part of a page
					return l
				}
				return "](" + served(to) + ")"
			})
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
