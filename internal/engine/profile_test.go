package engine

import "testing"

func TestProfilesOfJobsOfOtherSizesAreTold(t *testing.T) {
	p := Profiles{Dir: t.TempDir()}
	t.Setenv("OMPI_COMM_WORLD_SIZE", "8")
	for said, want := range map[int]int{4: 4, 0: 8, -1: 8} {
		if got := p.Of(0, said, 1).Ranks; got != want {
			t.Errorf("a profile of %d ranks where MPI says %d and the launcher 8", got, said)
		}
	}
	for _, nonsense := range []string{"x", "-1"} {
		t.Setenv("OMPI_COMM_WORLD_SIZE", nonsense)
		if got := p.Of(0, 0, 1).Ranks; got != 0 {
			t.Errorf("%d ranks by %q", got, nonsense)
		}
	}
}
