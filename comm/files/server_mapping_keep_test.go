package files

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"pinwheel/mem"
)

// A mapping keeps the blocks of a file that was removed.
func TestMappingThatNobodyUsesGoes(t *testing.T) {
	f, busy := fileOf(t, 10_000), fileOf(t, 100)
	s, of := stampNow(t, f), stampNow(t, busy)
	s.chgNs, of.chgNs = 0, 0 // long before the time of the test
	synctest.Test(t, func(t *testing.T) {
		var unmapped atomic.Int64
		ms := &mappings{most: 2, forget: func(mem.Range) { unmapped.Inc() }, of: map[fileKey]*mapping{}}
		defer ms.close()
		used, err := ms.get(busy, of)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for time.Since(begin) < 10*keepMapping { // as often as it takes to keep it
			m, err := ms.get(f, s)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(keepMapping / 2)
			ms.put(m)
			time.Sleep(keepMapping / 3)
		}
		synctest.Wait()
		if n, hits := ms.count(); n != 2 || hits == 0 || unmapped.Load() != 0 {
			t.Errorf("%d mappings, %d hits, %d unmapped of those that are used", n, hits, unmapped.Load())
		}
		time.Sleep(2 * keepMapping)
		synctest.Wait()
		if n, _ := ms.count(); n != 1 || unmapped.Load() != 1 {
			t.Errorf("%d mappings, %d unmapped, where one is in use", n, unmapped.Load())
		}
		ms.put(used)
		time.Sleep(2 * keepMapping)
		synctest.Wait()
		if n, _ := ms.count(); n != 0 || unmapped.Load() != 2 || ms.timer != nil {
			t.Errorf("%d mappings, %d unmapped; a timer: %v", n, unmapped.Load(), ms.timer != nil)
		}
	})
}

func TestRegistrationsAreKeptOnlyWhereFilesAreSentAgainInTime(t *testing.T) {
	ms := &mappings{most: 1, forget: func(mem.Range) {}, of: map[fileKey]*mapping{}}
	defer ms.close()
	var files []stamp
	send := func(k int, again bool) (kept bool) {
		for k >= len(files) {
			f := fileOf(t, 100)
			s := stampNow(t, f)
			s.chgNs = 0 // long ago
			files = append(files, s)
		}
		kept = ms.worth(files[k], again)
		if m := ms.find(files[k]); m != nil {
			ms.put(m)
			return kept
		}
		ms.put(ms.add(&mapping{stamp: files[k], settled: true, refs: 1, used: time.Now()}))
		return kept
	}
	for k := range 10 { // each of these but the latest has to go for the next
		if kept := send(k, false); kept != (k <= enoughWasted) {
			t.Errorf("file %d: kept %v", k, kept)
		}
	}
	for k := range 3 { // nor are they there when they come again
		if send(k, true) {
			t.Errorf("file %d is kept for its second time, and was not there", k)
		}
	}
	// It takes some that are sent again while they are mapped, in a row or not, to show that there is room now.
	for n := 1; n <= 7; n++ {
		if kept := send(2, true); kept != (n == 7) {
			t.Errorf("again for the %dth time: kept %v", n, kept)
		}
	}
	if !send(3, false) {
		t.Error("what has shown to be worth it is so no more after one file")
	}
	if send(4, false); send(5, false) {
		t.Error("files that go in vain again are kept")
	}
}

// A file that is copied leaves the mapping of another one where it is: that this one is found then says nothing of the
// room for both.
func TestMappingThatIsThereForWantOfOthersIsNoReasonToKeepMore(t *testing.T) {
	ms := &mappings{most: 2, forget: func(mem.Range) {}, of: map[fileKey]*mapping{}}
	defer ms.close()
	var files []stamp
	for range 3 {
		s := stampNow(t, fileOf(t, 100))
		s.chgNs = 0 // long ago
		files = append(files, s)
	}
	ms.wasted = mostWasted
	ms.put(ms.add(&mapping{stamp: files[0], settled: true, refs: 1, used: time.Now()}))
	for range 2 * mostWasted {
		for _, s := range files { // one more than stay mapped
			if ms.worth(s, true) {
				t.Fatal("there is room")
			}
		}
	}
	// Two of them have room, whether they are mapped or not.
	for n := 1; n <= mostWasted; n++ {
		if worth := ms.worth(files[1+n%2], true); worth != (mostWasted-n < enoughWasted) {
			t.Fatalf("again for the %dth time: %v", n, worth)
		}
	}
	if len(ms.recent) != ms.most {
		t.Errorf("%d files are known", len(ms.recent))
	}
}
