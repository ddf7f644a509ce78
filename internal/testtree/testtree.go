// Package testtree makes root directories of machines for tests from a short description: one
// "path: line" for each line of each file. Lines that begin with # are comments.
//
// {0-3,8} in a path stands for all processors of that list. The line is then either the same for all or has
// lists of as many processors, of which each takes its own:
//
//	sys/devices/system/cpu/cpu{0-7}/topology/core_cpus_list: {0-7},{8-15}
package testtree

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"pinwheel/internal/cpulist"
)

// Read makes the tree that a file describes.
func Read(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(t, string(text))
}

// Parse makes the tree that a text describes.
func Parse(t testing.TB, text string) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, content, ok := strings.Cut(line, ":")
		switch {
		case line == "" || line[0] == '#':
			continue
		case !ok:
			t.Fatalf("%q is not \"path: line\"", line)
		}
		content = strings.TrimPrefix(content, " ")
		names, err := expand(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := expand(content, len(names))
		if err != nil || len(lines) != len(names) {
			t.Fatalf("%s: %d lines for %d files, %v", line, len(lines), len(names), err)
		}
		for i, name := range names {
			file := tree[name]
			if file == nil {
				file = &fstest.MapFile{Mode: 0o444}
				tree[name] = file
			}
			file.Data = append(append(file.Data, lines[i]...), '\n')
		}
	}
	return tree
}

var braces = regexp.MustCompile(`\{[0-9,-]+\}`)

// expand returns s once for each processor of its lists, which are of one length; n times s without any.
func expand(s string, n int) ([]string, error) {
	var lists [][]int
	for _, b := range braces.FindAllString(s, -1) {
		list, err := cpulist.Parse(b[1 : len(b)-1])
		if err != nil {
			return nil, err
		}
		if lists = append(lists, list); len(list) != len(lists[0]) {
			return nil, fmt.Errorf("%q: lists of different lengths", s)
		}
		n = len(list)
	}
	all := make([]string, n)
	for i := range all {
		next := 0
		all[i] = braces.ReplaceAllStringFunc(s, func(string) string {
			next++
			return strconv.Itoa(lists[next-1][i])
		})
	}
	return all, nil
}
