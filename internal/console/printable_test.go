package console

import "testing"

func TestWhatNoTerminalShowsIsWrittenAsInALiteral(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"grün \\ \"q\"":   "grün \\ \"q\"",
		"a\nb\t\x1b[2J":   `a\nb\t\x1b[2J`,
		"gr\xfcn\u202e":   `gr\xfcn\u202e`,
		"\ufffd and \x7f": "\ufffd and " + `\x7f`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
