package command

import (
	"slices"
	"testing"
)

func TestParserHoldsWhatTheLineNeeds(t *testing.T) {
	all := []string{"show", "go", "completion", "complete", "man", "help", "version"}
	for _, c := range []struct {
		args, want []string
		told       string
	}{
		{nil, all, ""},
		{[]string{"--help"}, all, ""},
		{[]string{"--version", "show"}, all, ""},
		{[]string{"Show"}, all, ""},
		{[]string{"print-version"}, all, ""},
		{[]string{"show", "go"}, []string{"show"}, "show"},
		{[]string{"version"}, []string{"version"}, "version"},
	} {
		told, s := "none", toolSpec()
		s.Declarations = func(subcommand string) any {
			told = subcommand
			return &tool{}
		}
		var have []string
		for _, n := range s.parser(c.args).Model.Children {
			have = append(have, n.Name)
		}
		if !slices.Equal(have, c.want) || told != c.told {
			t.Errorf("%q: %q, told %q; want %q, %q", c.args, have, told, c.want, c.told)
		}
	}
}
