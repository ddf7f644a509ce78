package launch

import (
	"path/filepath"
	"strings"
)

// wrapper is a program that starts the command behind its own arguments, and
// changes only how it runs: where, when, with which variables.
type wrapper struct {
	values   map[string]int // options with arguments, for programAt
	operands int            // arguments between the options and the command
}

// wrappers are those that people put before a launcher. Their options are those
// of GNU coreutils, util-linux and numactl(8).
var wrappers = map[string]wrapper{
	"env":     {values: arity("u unset C chdir", "")},
	"nice":    {values: arity("n adjustment", "")},
	"ionice":  {values: arity("c class n classdata", "")},
	"nohup":   {},
	"setsid":  {},
	"stdbuf":  {values: arity("i input o output e error", "")},
	"time":    {values: arity("f format o output", "")},
	"timeout": {values: arity("k kill-after s signal", ""), operands: 1},
	"taskset": {operands: 1}, // the mask, or with -c the list
	"chrt":    {values: arity("T sched-runtime P sched-period D sched-deadline", ""), operands: 1},
	"numactl": {values: arity("i interleave m membind N cpunodebind C physcpubind p preferred P preferred-many w "+
		"weighted-interleave", "")},
}

// splitWrappers separates the wrappers of a command from what they start. A
// command without a launcher behind its wrappers is all command.
func splitWrappers(command, environ []string) (before, behind []string) {
	behind = behindWrappers(command)
	if len(behind) > 0 && len(behind) < len(command) {
		if path, err := find(behind[0]); err == nil {
			if _, starts := recognise(path, environ); starts {
				n := len(command) - len(behind)
				return command[:n:n], behind
			}
		}
	}
	return nil, command
}

// behindWrappers returns what the wrappers of a command start: all of it, if it has none.
func behindWrappers(command []string) []string {
	for i := 0; i < len(command); {
		path, err := find(command[i])
		if err != nil {
			return command[i:]
		}
		w, isWrapper := wrappers[filepath.Base(path)]
		if !isWrapper {
			return command[i:]
		}
		i += 1 + programAt(command[i+1:], w.values)
		for n := 0; i < len(command) && (n < w.operands || isAssignment(path, command[i])); i++ {
			if !isAssignment(path, command[i]) {
				n++
			}
		}
	}
	return nil
}

// isAssignment reports whether an argument of env(1) sets a variable.
func isAssignment(path, argument string) bool {
	return filepath.Base(path) == "env" && strings.Contains(argument, "=")
}

// clearsEnvironment reports whether a wrapper keeps the variables from the
// launcher.
func clearsEnvironment(before []string) bool {
	for i, a := range before {
		if filepath.Base(a) != "env" {
			continue
		}
		for _, option := range before[i+1:] {
			if !strings.HasPrefix(option, "-") {
				break
			}
			if option == "-" || option == "-i" || option == "--ignore-environment" {
				return true
			}
		}
	}
	return false
}
