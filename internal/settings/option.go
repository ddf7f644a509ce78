package settings

import (
	"fmt"
	"strings"
)

// Variable describes one row of the table, for commands that offer it as an
// option or document it.
type Variable struct {
	Name    string // with Prefix: "PINWHEEL_IDLE_POLICY"
	Option  string // as a command line has it: "idle-policy"
	Syntax  string // values that it takes: "y|n|FILE"
	Default string // as it would be written; "" for none
	Doc     string // one or more sentences
}

// Switch reports whether the option may be given without a value, for y.
func (v Variable) Switch() bool { return strings.HasPrefix(v.Syntax, "y|n") }

// Variables returns the table, in the order of the listing.
func Variables() []Variable {
	all := make([]Variable, len(table))
	for i, v := range table {
		option := strings.ReplaceAll(strings.ToLower(v.name), "_", "-")
		all[i] = Variable{Prefix + v.name, option, v.kind.syntax, v.value, v.doc}
	}
	return all
}

// Check returns an error that says what is wrong with a value of the variable
// of that full name.
func Check(name, value string) error {
	v := lookup(strings.TrimPrefix(name, Prefix))
	if v == nil {
		return fmt.Errorf("%s is not a setting", name)
	}
	return v.kind.parse(&Settings{}, value)
}
