package uffd

import "testing"

func TestErrorNamesTheKernelThatHasTheFeatures(t *testing.T) {
	for features, want := range map[uint64]string{
		WPAsync | WPShared | EventRemap: "6.7", WPShared | WPUnpopulated: "6.4", WPShared: "5.19",
		EventRemap | EventUnmap: "5.11",
	} {
		if got := leastLinux(features); got != want {
			t.Errorf("%#x needs Linux %s, want %s", features, got, want)
		}
	}
}
