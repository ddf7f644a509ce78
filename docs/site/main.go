// Command site puts the pages of this repository together for MkDocs, and checks what MkDocs has made of them. It is
// run by make docs.
//
//	site stage ROOT DIR    copies the pages of the repository ROOT, and what they link to, into DIR
//	site check DIR         looks for links that lead nowhere, and for what would be loaded from elsewhere
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "stage":
		return stage(args[1], args[2])
	case len(args) == 2 && args[0] == "check":
		return check(args[1])
	}
	return fmt.Errorf("usage: site stage ROOT DIR | site check DIR")
}
