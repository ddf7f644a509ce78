package settings

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"pinwheel/internal/console"
)

// noValue is shown where a variable has no default.
const noValue = "(none)"

// Default returns the settings of an empty environment.
func Default() Settings {
	s, _ := Load(nil)
	return s
}

// FromEnvironment returns the settings of this process, and one line for each
// variable that could not be used; none where nothing is to be logged.
func FromEnvironment() (Settings, []string) {
	s, warnings := Load(os.Environ())
	if s.Log == "off" {
		return s, nil
	}
	return s, warnings
}

// Load reads settings from variables of the form NAME=value, as os.Environ
// returns them. An empty value counts as not set. The warnings, one line each,
// name variables that are unknown or have a value that can't be read; the
// defaults hold for those.
func Load(environ []string) (s Settings, warnings []string) {
	for _, v := range table {
		if err := v.kind.parse(&s, v.value); err != nil {
			panic(fmt.Sprintf("settings: default of %s%s: %v", Prefix, v.name, err)) // a row of the table is wrong
		}
	}
	environ, warnings = renamed(environ)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		name, ours := strings.CutPrefix(name, Prefix)
		if !ours || value == "" {
			continue
		}
		v := lookup(name)
		if formerNames[name] != "" {
			continue
		}
		if v == nil {
			warnings = append(warnings, unknown(name))
		} else if err := v.kind.parse(&s, value); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s%s: %v; using %s", Prefix, name, err, cmp.Or(v.value, noValue)))
		}
	}
	slices.Sort(warnings)
	return s, warnings
}

// formerNames are the names that variables had before.
var formerNames = map[string]string{"HELPER_SHARE": "COST"}

// renamed returns the variables with their present names, those with a former name first, so that the present one has
// the last word.
func renamed(environ []string) (all, warnings []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		former, ours := strings.CutPrefix(name, Prefix)
		if now := formerNames[former]; ours && now != "" && value != "" {
			all = append(all, Prefix+now+"="+value)
			warnings = append(warnings, fmt.Sprintf("%s is now %s%s, the most of a rank's time that Pinwheel may cost, and is read as that",
				name, Prefix, now))
		}
	}
	return append(all, environ...), warnings
}

func lookup(name string) *variable {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

// unknown is the warning about a variable that is not in the table.
func unknown(name string) string {
	name = console.Printable(name) // a warning is one line
	warning := fmt.Sprintf("%s%s is not known and ignored", Prefix, name)
	best, bestDist := "", len(name)/3+1 // more edits than that make another word
	for _, v := range table {
		if d := distance(strings.ToUpper(name), v.name); d <= bestDist && (best == "" || d < bestDist) {
			best, bestDist = v.name, d
		}
	}
	if best != "" {
		warning += fmt.Sprintf("; maybe: %s%s?", Prefix, best)
	}
	return warning
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that lead from a to b (optimal string alignment).
func distance(a, b string) int {
	var before, last, row []int
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, []int{i}
		for j := 1; j <= len(b); j++ {
			d := min(last[j]+1, row[j-1]+1)
			if a[i-1] == b[j-1] {
				d = min(d, last[j-1])
			} else {
				d = min(d, last[j-1]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row = append(row, d)
		}
	}
	return row[len(b)]
}
