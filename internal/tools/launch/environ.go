package launch

import (
	"slices"
	"strings"
)

// Getenv returns the value of a variable in a list of NAME=value.
func Getenv(environ []string, name string) (value string, set bool) {
	for _, entry := range environ {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			value, set = v, true // the last one counts, as for os/exec
		}
	}
	return value, set
}

// setenv returns the list with the variable set.
func setenv(environ []string, name, value string) []string {
	return append(unsetenv(environ, name), name+"="+value)
}

// unsetenv returns the list without the variable.
func unsetenv(environ []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, name+"=")
	})
}
