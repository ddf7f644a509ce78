package testtree

import "testing"

func TestListsInBracesStandForFiles(t *testing.T) {
	tree := Parse(t, `
# comment
a/cpu{0-1,4}/core: {0-1,4},{8-9,12}
a/cpu{0-1}/level: 2
b: 4:memory:/x
b: 0::/
`)
	for name, want := range map[string]string{
		"a/cpu0/core": "0,8\n", "a/cpu1/core": "1,9\n", "a/cpu4/core": "4,12\n",
		"a/cpu0/level": "2\n", "a/cpu1/level": "2\n",
		"b": "4:memory:/x\n0::/\n",
	} {
		file := tree[name]
		if file == nil || string(file.Data) != want {
			t.Errorf("%s: %v, want %q", name, file, want)
		}
		delete(tree, name)
	}
	if len(tree) > 0 {
		t.Errorf("left: %v", tree)
	}
	if _, err := expand("{0-1}{0-2}", 1); err == nil {
		t.Error("lists of two lengths were accepted")
	}
}
