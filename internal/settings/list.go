package settings

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// WriteList prints the settings of the given environment (see Load), one
// NAME=value each, in the manner of ucx_info -c. With full, every one is
// preceded by its documentation, syntax, default and source, as comments: the
// output is a shell script that sets what is in force.
func WriteList(w io.Writer, environ []string, full bool) error {
	set := make(map[string]string)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	var b strings.Builder
	for _, v := range table {
		name, value, source, ignored := Prefix+v.name, v.value, "default", ""
		if given := set[name]; given != "" {
			var s Settings
			if err := v.kind.parse(&s, given); err == nil {
				value, source = given, "environment"
			} else {
				ignored = wrap("# ignored: ", err.Error())
			}
		}
		if full {
			fmt.Fprintf(&b, "#\n%s#\n# syntax:  %s\n# default: %s\n# source:  %s\n%s#\n",
				wrap("# ", v.doc), v.kind.syntax, cmp.Or(v.value, noValue), source, ignored)
		}
		fmt.Fprintf(&b, "%s=%s\n", name, quote(value))
		if full {
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quote makes a value safe to read back by a shell.
func quote(value string) string {
	if strings.ContainsAny(value, " \t\"'$`\\;&|<>()*?~#") {
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	return value
}

// wrap breaks text into lines of at most 78 columns that begin with prefix.
func wrap(prefix, text string) string { return wrapAt(78, prefix, text) }

func wrapAt(columns int, prefix, text string) string {
	var b strings.Builder
	start := strings.TrimSuffix(prefix, " ")
	line := start
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > columns {
			b.WriteString(line + "\n")
			line = start
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
	return b.String()
}
