package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pagesOf returns the names of all pages of a repository, relative to its root.
func pagesOf(root string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (name == "out" || name == "bin" || d.Name() == "testdata" || d.Name()[0] == '.') {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func readPage(root, name string) (page, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	return parse(string(text)), err
}

// target splits a link of a page into the file that it leads to, relative to the root, and the anchor there.
func target(from, link string) (name, anchor string) {
	name, anchor, _ = strings.Cut(link, "#")
	if name == "" {
		return from, anchor
	}
	return path.Join(path.Dir(from), name), anchor
}

// brokenLinks returns an error for each link of the repository's pages that leads nowhere.
func brokenLinks(root string) (links int, err error) {
	names, err := pagesOf(root)
	if err != nil {
		return 0, err
	}
	anchors := map[string]map[string]bool{}
	pages := map[string]page{}
	for _, name := range names {
		p, err := readPage(root, name)
		if err != nil {
			return 0, err
		}
		pages[name], anchors[name] = p, p.anchors()
	}
	var broken []error
	for _, name := range names {
		for _, l := range pages[name].links() {
			links++
			to, anchor := target(name, l)
			if strings.HasPrefix(to, "..") {
				broken = append(broken, fmt.Errorf("%s: %s leads out of the repository", name, l))
			} else if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				broken = append(broken, fmt.Errorf("%s: %s leads nowhere", name, l))
			} else if anchor != "" && !anchors[to][anchor] {
				broken = append(broken, fmt.Errorf("%s: %s: %s has no such anchor", name, l, to))
			}
		}
	}
	return links, errors.Join(broken...)
}

// linked returns the files that are no pages, and the directories, that pages link to.
func linked(root string, pages map[string]page) (files, dirs []string, err error) {
	for from, p := range pages {
		for _, l := range p.links() {
			to, _ := target(from, l)
			if _, isPage := pages[to]; isPage {
				continue
			}
			info, err := os.Stat(filepath.Join(root, to))
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %s leads nowhere", from, l)
			}
			if info.IsDir() {
				dirs = append(dirs, to)
			} else {
				files = append(files, to)
			}
		}
	}
	slices.Sort(files)
	slices.Sort(dirs)
	return slices.Compact(files), slices.Compact(dirs), nil
}
