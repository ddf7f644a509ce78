package place

import "testing"

func TestOtherDirectoriesHaveOtherNames(t *testing.T) {
	if bootID() == nil {
		t.Fatal("this machine has no boot ID")
	}
	seen := map[string]bool{}
	for dev := range uint64(3) {
		for ino := range uint64(3) {
			name := Of(dev, ino)
			if name == "" || seen[name] || name != Of(dev, ino) {
				t.Errorf("%d, %d: %q", dev, ino, name)
			}
			seen[name] = true
		}
	}
}
