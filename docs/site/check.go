package main

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
)

var (
	attribute = regexp.MustCompile(`<([a-z]+)\b[^>]*?\s(href|src)="([^"]*)"`)
	id        = regexp.MustCompile(`\s(?:id|name)="([^"]*)"`)
	loads     = regexp.MustCompile(`url\(\s*["']?(?:https?:)?//|@import`)
)

// check returns an error for each link of a site that leads nowhere, and for all that a browser would load from elsewhere.
func check(dir string) error {
	site := os.DirFS(dir)
	texts := map[string]string{}
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" && path.Ext(name) != ".css" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		texts[name] = string(text)
		return err
	})
	if err != nil {
		return err
	}
	if texts["index.html"] == "" {
		return fmt.Errorf("%s has no index.html", dir)
	}
	var found []error
	for name, text := range texts {
		if path.Ext(name) == ".css" && loads.MatchString(text) {
			found = append(found, fmt.Errorf("%s loads from elsewhere", name))
		}
		if path.Ext(name) != ".html" || name == "404.html" { // whose links begin at the root of a server
			continue
		}
		for _, m := range attribute.FindAllStringSubmatch(text, -1) {
			if err := checkLink(site, texts, name, m[1], html.UnescapeString(m[3])); err != nil {
				found = append(found, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(found...)
}

// checkLink looks at what an element of a page refers to.
func checkLink(site fs.FS, texts map[string]string, from, element, ref string) error {
	u, err := url.Parse(ref)
	if err != nil {
		return err
	}
	if u.Scheme != "" || u.Host != "" {
		if element == "a" { // nothing is loaded until somebody follows it
			return nil
		}
		return fmt.Errorf("%s would be loaded from elsewhere", ref)
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	info, err := fs.Stat(site, to)
	if err != nil {
		return fmt.Errorf("%s leads nowhere", ref)
	}
	if info.IsDir() {
		to = path.Join(to, "index.html")
		if texts[to] == "" {
			return fmt.Errorf("%s leads to a directory without a page", ref)
		}
	}
	if u.Fragment == "" || element != "a" || path.Ext(to) != ".html" {
		return nil
	}
	for _, m := range id.FindAllStringSubmatch(texts[to], -1) {
		if html.UnescapeString(m[1]) == strings.TrimSpace(u.Fragment) {
			return nil
		}
	}
	return fmt.Errorf("%s: there is no such anchor", ref)
}
