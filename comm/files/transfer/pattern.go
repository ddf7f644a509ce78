package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"pinwheel/comm/files"
)

// isPattern tells whether a name may stand for several.
func isPattern(name string) bool {
	_, err := path.Match(name, "")
	return err == nil && strings.ContainsAny(name, `*?[`)
}

// expand returns the names that a pattern stands for, sorted. A name that is there stands for itself, whatever it has.
func expand(ctx context.Context, c *files.Client, pattern string) ([]string, error) {
	if !isPattern(pattern) {
		return []string{pattern}, nil
	}
	if _, err := c.Stat(ctx, pattern); err == nil || fatal(err) {
		return []string{pattern}, err
	}
	found := []string{"."}
	for element := range strings.SplitSeq(pattern, "/") {
		var next []string
		for _, dir := range found {
			names, err := matching(ctx, c, dir, element)
			if err != nil {
				return nil, err
			}
			next = append(next, names...)
		}
		found = next
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: nothing at the server has such a name", pattern)
	}
	slices.Sort(found)
	return found, nil
}

// matching returns what an element of a pattern stands for in a directory of the server.
func matching(ctx context.Context, c *files.Client, dir, element string) (names []string, err error) {
	if !isPattern(element) {
		name := path.Join(dir, element)
		if _, err = c.Stat(ctx, name); err == nil {
			names = []string{name}
		}
	} else {
		for info, failed := range c.List(ctx, dir) {
			if failed != nil {
				err = failed
				break
			}
			hidden := strings.HasPrefix(info.Name(), ".") && !strings.HasPrefix(element, ".")
			if ok, _ := path.Match(element, info.Name()); ok && !hidden && !isPartial(info.Name()) { // it is none that is bad
				names = append(names, path.Join(dir, info.Name()))
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		err = nil // the pattern says nothing of what it is in
	}
	return names, err
}
