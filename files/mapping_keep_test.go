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
