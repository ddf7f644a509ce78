package launch

import (
	"slices"
	"strings"
)

// segment is the part of a launcher's command line that starts one program;
// more than one are separated by ":" (MPMD, heterogeneous jobs).
type segment struct {
	options []string
	command []string // program and arguments; empty if none was found
}

// scan splits what follows a launcher's name. values has, by its name without
// leading dashes, how many arguments follow an option; others have none.
func scan(args []string, values map[string]int) []segment {
	var all []segment
	for {
		end := slices.Index(args, ":")
		if end < 0 {
			end = len(args)
		}
		n := programAt(args[:end], values)
		all = append(all, segment{options: args[:n:n], command: args[n:end:end]})
		if end == len(args) {
			return all
		}
		args = args[end+1:]
	}
}

// programAt returns the index of the first argument that belongs to no option.
func programAt(args []string, values map[string]int) int {
	i := 0
	for i < len(args) {
		a := args[i]
		if a == "--" {
			return i + 1
		}
		if len(a) < 2 || a[0] != '-' {
			return i
		}
		i += 1 + values[strings.TrimLeft(a, "-")]
	}
	return len(args)
}

// join undoes scan.
func join(segments []segment) []string {
	var args []string
	for i, s := range segments {
		if i > 0 {
			args = append(args, ":")
		}
		args = append(append(args, s.options...), s.command...)
	}
	return args
}

// arity makes the table for scan: names of options with one argument and
// with two, separated by spaces.
func arity(one, two string) map[string]int {
	values := map[string]int{}
	for _, name := range strings.Fields(one) {
		values[name] = 1
	}
	for _, name := range strings.Fields(two) {
		values[name] = 2
	}
	return values
}
