package command

import (
	"slices"
	"strings"
)

// textOf returns the text of an error with "; " between those that errors.Join has joined: a newline is part of a name
// otherwise.
func textOf(err error) string {
	text := err.Error()
	var parts []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			parts = []error{inner}
		}
	case interface{ Unwrap() []error }:
		parts = slices.DeleteFunc(slices.Clone(e.Unwrap()), func(p error) bool { return p == nil })
	}
	var plain, all []string
	for _, p := range parts {
		plain, all = append(plain, p.Error()), append(all, textOf(p))
	}
	if len(parts) > 1 && text == strings.Join(plain, "\n") {
		return strings.Join(all, "; ")
	}
	for i := range parts {
		text = strings.Replace(text, plain[i], all[i], 1)
	}
	return text
}
