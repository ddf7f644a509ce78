package replay

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/schedule"
)

// coreUser is a helper with operations to do, one after the other.
type coreUser struct {
	seat
	at    int64   // of its next turn
	work  []int64 // lengths of operations; a negative one is a pause
	began int64   // of the operation under way
	busy  bool
	asked int64 // for the core, since when; 0: has it
}

// A core runs one helper at a time, in order of arrival, and nobody waits for longer than the
// others' slices, each outlasted by one operation.
func TestHelpersTakeTurnsOnTheirCore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const sliceNs, longestNs = 1000, 400
		users := make([]*coreUser, rapid.IntRange(1, 5).Draw(t, "helpers"))
		core := &helperCore{sliceNs: sliceNs}
		of := map[*seat]*coreUser{}
		core.wake = func(s *seat, at int64) { of[s].at = at }
		var total int64
		for i := range users {
			u := &coreUser{at: rapid.Int64Range(0, 2000).Draw(t, "start")}
			u.rank = &rank{id: i}
			for _, ns := range rapid.SliceOfN(rapid.Int64Range(-longestNs, longestNs), 1, 50).Draw(t, "work") {
				u.work = append(u.work, ns)
				total += max(ns, 0)
			}
			of[&u.seat] = u
			users[i] = u
		}
		var busyUntil, done int64
		for {
			var u *coreUser
			for _, o := range users {
				if o.at != never && (u == nil || o.at < u.at) {
					u = o
				}
			}
			if u == nil {
				break
			}
			now := u.at
			if u.busy {
				u.busy = false
				done += now - u.began
			}
			next, ok := core.request(&u.seat, now)
			turnNs := int64(sliceNs + longestNs + 2*schedule.SwitchNs)
			if most := int64(len(users)-1) * turnNs; ok && u.asked > 0 && now-u.asked > most {
				t.Fatalf("a helper waited for %d ns, want at most %d", now-u.asked, most)
			}
			if ok {
				u.asked = 0
			} else if u.asked == 0 {
				u.asked = now
			}
			if !ok {
				u.at = next
				if next != never && next-now != schedule.SwitchNs {
					t.Fatalf("to take over the core takes %d ns", next-now)
				}
				continue
			}
			if now < busyUntil {
				t.Fatalf("two helpers run at %d", now)
			}
			switch {
			case len(u.work) == 0:
				core.leave(&u.seat, now)
				u.at = never
			case u.work[0] < 0:
				core.leave(&u.seat, now)
				u.at = now - u.work[0]
				u.work = u.work[1:]
			default:
				u.began, u.busy = now, true
				u.at, busyUntil = now+u.work[0], now+u.work[0]
				u.work = u.work[1:]
			}
		}
		if done != total {
			t.Errorf("%d ns of work done of %d", done, total)
		}
		if core.holder != nil || len(core.waiting) > 0 {
			t.Errorf("the core is not free at the end")
		}
	})
}

func TestACoreIsGivenToWhoHasWaitedLongest(t *testing.T) {
	var woken []int
	core := &helperCore{sliceNs: 100, wake: func(s *seat, at int64) { woken = append(woken, s.rank.id, int(at)) }}
	seats := make([]seat, 3)
	for i := range seats {
		seats[i].rank = &rank{id: i}
	}
	if _, ok := core.request(&seats[0], 0); !ok {
		t.Fatal("a free core was refused")
	}
	for i, at := range []int64{10, 5} {
		if next, ok := core.request(&seats[2-i], at); ok || next != never {
			t.Fatalf("a held core was given to another")
		}
	}
	if _, ok := core.request(&seats[0], 99); !ok {
		t.Error("the core was taken from its holder within its slice")
	}
	if _, ok := core.request(&seats[0], 100); ok {
		t.Error("the holder went on after its slice")
	}
	core.leave(&seats[2], 200)
	core.leave(&seats[1], 300)
	want := []int{2, 100 + schedule.SwitchNs, 1, 200 + schedule.SwitchNs, 0, 300 + schedule.SwitchNs}
	for i := range want {
		if i >= len(woken) || woken[i] != want[i] {
			t.Fatalf("woken %v (rank, time), want %v", woken, want)
		}
	}
	if got := seats[1].rank.sharing.HelperWaitNs; got != 195 {
		t.Errorf("rank 1 waited for %d ns, want 195", got)
	}
	if load := core.load(1000, 1000); load != 1 {
		t.Errorf("the load is %v, want 1: somebody held the core all the time", load)
	}
}
