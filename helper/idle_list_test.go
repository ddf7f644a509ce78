package helper

import "testing"

func TestClaimsListsTheLivingWithoutTouchingTheTable(t *testing.T) {
	dir := t.TempDir()
	if all, err := Claims(dir); err != nil || len(all) != 0 {
		t.Fatalf("without a table: %v, %v", all, err)
	}
	pid, kill := startPeer(t, dir, "claim")
	all, err := Claims(dir)
	if err != nil || len(all) != 1 || int(all[0].Owner.PID) != pid || all[0].CPU != 1 || all[0].Bytes != 1<<30 {
		t.Errorf("with a peer: %+v, %v, want one claim of %d", all, err, pid)
	}
	kill()
	if all, err := Claims(dir); err != nil || len(all) != 0 {
		t.Errorf("with a dead peer: %v, %v", all, err)
	}
}
