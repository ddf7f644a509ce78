// Package testdata has messages in all forms that are collected. Nothing builds it.
package testdata

import (
	"errors"
	"fmt"
)

const part = "three constant"

var errFound = errors.New("made by errors.New")

func prints(e engine, n int, err error) error {
	e.Warn("kind", fmt.Sprintf("a warning of %5.1f", 1.5))
	e.Note("joined of "+part+" parts: %v", err)
	e.Note("%v", err)
	if n > 1 {
		return fmt.Errorf("an error of %d bytes", n)
	}
	return fmt.Errorf("%w: begins with one that has a name of its own", errFound)
}

func stored() string { return "a sentence " + "that is stored" }

func passed() string { return "a sentence that nobody asked for" }
