package record

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// placeholders are those of settings.Expand, each with what may stand for it.
var placeholders = map[byte]string{'%': "%", 'h': "[^/]+", 'p': "[0-9]+", 'r': "(?:[0-9]+-)?[0-9]+", 'j': "[^/]+"}

// worldGroup is the group of a matcher's expression for what comes before the
// rank in processes that MPI_Comm_spawn has started.
const worldGroup = "world"

// matcher returns the expression that the names of files made from a pattern
// match, with or without the suffix that trace.Create adds until a file is
// whole. The first group is the name without it. The directory must be the same
// for all ranks.
func matcher(pattern string) (*regexp.Regexp, error) {
	dir, base := filepath.Split(pattern)
	if strings.Contains(strings.ReplaceAll(dir, "%%", ""), "%") {
		return nil, fmt.Errorf("%s: only the file's name may have a %% and a letter; name one directory for all ranks",
			pattern)
	}
	var b strings.Builder
	distinct, named := false, false
	for i := 0; i < len(base); i++ {
		if base[i] == '%' && i+1 < len(base) {
			if form, ok := placeholders[base[i+1]]; ok {
				i++
				if base[i] == 'r' && !named { // see settings.World
					form, named = "(?:(?P<"+worldGroup+">[0-9]+)-)?[0-9]+", true
				}
				b.WriteString(form)
				distinct = distinct || base[i] == 'r' || base[i] == 'p'
				continue
			}
		}
		b.WriteString(regexp.QuoteMeta(base[i : i+1]))
	}
	if !distinct {
		return nil, fmt.Errorf("%s: every rank needs a file of its own; put %%r where the rank belongs", pattern)
	}
	return regexp.MustCompile("^(" + b.String() + `)(\.[0-9]+\.partial)?$`), nil
}
