// Command gen updates the list of settings in the documents named as arguments.
package main

import (
	"fmt"
	"os"

	"pinwheel/internal/outfile"
	"pinwheel/internal/settings"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := update(name); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func update(name string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	doc, err := settings.UpdatePage(string(old))
	if err != nil || doc == string(old) {
		return err
	}
	return outfile.WriteText(name, doc)
}
