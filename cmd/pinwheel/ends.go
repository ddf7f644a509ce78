package main

import (
	"fmt"
	"slices"

	"pinwheel/comm/files/transfer"
	"pinwheel/internal/tools/command"
)

// standard is what stands for standard input and output, as for other programs.
const standard = "-"

// ends are what a copy goes from and to, as they were typed. The last of the paths is where it goes.
func ends(paths []string) (from []string, to string, err error) {
	last := len(paths) - 1
	from, to = paths[:last], paths[last]
	switch {
	case last == 0:
		err = command.Usagef("where does %s go? Give a second path", to)
	case last > 1 && slices.Contains(paths, standard):
		err = command.Usagef("- is standard input or output, for one file: one that is called - is ./-")
	}
	return from, to, err
}

// remotes takes files of one server apart. local is the other end of the copy, and other is the command that copies the
// other way.
func remotes(paths []string, local []string, other string) (address string, names []string, err error) {
	for _, p := range local {
		if _, _, err := transfer.ParseRemote(p); err != nil {
			continue
		}
		if _, _, err := transfer.ParseRemote(paths[0]); err != nil {
			return "", nil, command.Usagef("%s is at a server, and %s is not: that is pinwheel %s (a file here that is called "+
				"so is ./%s)", p, paths[0], other, p)
		}
		return "", nil, command.Usagef("%s and %s are both at servers: get it from one, then put it to the other", paths[0], p)
	}
	for _, p := range paths {
		at, name, err := transfer.ParseRemote(p)
		if err != nil {
			return "", nil, command.AsUsage(err)
		}
		if names = append(names, name); len(names) == 1 {
			address = at
		} else if at != address {
			return "", nil, command.Usagef("%s and %s are at two servers: get from one after the other", paths[0], p)
		}
	}
	return address, names, nil
}

// title is what a copy is called.
func title(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}
