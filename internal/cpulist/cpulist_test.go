package cpulist

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestListsAreReadAndWrittenAsTheKernelDoes(t *testing.T) {
	for in, want := range map[string][]int{
		"":              nil,
		"\n":            nil,
		"0\n":           {0},
		"0-3,8,10-11\n": {0, 1, 2, 3, 8, 10, 11},
		"5,1-2,2":       {1, 2, 5},
	} {
		got, err := Parse(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %v, %v, want %v", in, got, err, want)
		}
		if again, err := Parse(Format(got)); err != nil || !slices.Equal(again, want) {
			t.Errorf("%v is written as %q", got, Format(got))
		}
	}
	if got := Format([]int{0, 1, 2, 3, 8, 10, 11}); got != "0-3,8,10-11" {
		t.Error(got)
	}
	for _, in := range []string{"a", "1-", "-1", "3-1", "1,,2", "0-9999999999", "8192", "1 2"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", in, got)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	root := fstest.MapFS{"sys/online": &fstest.MapFile{Data: []byte("0-x\n")}}
	for _, name := range []string{"sys/online", "sys/offline"} {
		if _, err := Read(root, name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
