package testwait

import "testing"

// SkipUnderRace skips a test in which the race detector can find nothing that it does not find in others of its
// package, as why says, and that takes several times as long under it.
func SkipUnderRace(t testing.TB, why string) {
	t.Helper()
	if underRace {
		t.Skip("not under the race detector: " + why)
	}
}
