package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportSaysWhyNothingWasReleased(t *testing.T) {
	given := func(change func(*Rank)) Rank {
		r := Rank{Size: 1, VerbsUsed: true, Policy: "pinwheel", Helper: "on an idle core (auto)", Mapping: "bpf",
			Seconds: 13.9, Uses: 44, Hits: 40, First: 4}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		rank Rank
		want string // "": nothing is said
	}{
		"no idle core": {given(func(r *Rank) { r.Parks, r.FirstParkNs, r.ParkedNs = 1, 3e9, 10.9e9 }),
			"Nothing was released: no idle core; the helper was parked from 3.0 s on, for 10.9 s of 13.9 s (leave a core free"},
		"few uses": {given(func(r *Rank) { r.Uses, r.First = 3, 1 }),
			"Nothing was released: 3 uses, nothing learned yet."},
		"one use each": {given(func(r *Rank) { r.Uses, r.First = 4, 4 }),
			"Nothing was released: 4 uses of 4 buffers, none of them used twice."},
		"short gaps": {given(func(r *Rank) { r.Predictions = 40 }),
			"none of 40 predictions left time to release a buffer"},
		"lost uses": {given(func(r *Rank) { r.Lost = 40 }),
			"40 of 44 uses came faster than the helper could take them in."},
		"no helper": {given(func(r *Rank) { r.Helper = "none" }),
			"there was no helper thread (see the output of the job)."},
		"helper is off": {given(func(r *Rank) { r.Helper, r.Environment = "none", []string{"PINWHEEL_IDLE_POLICY=off"} }),
			"PINWHEEL_IDLE_POLICY=off leaves out"},
		"fault":          {given(func(r *Rank) { r.HelperFaulted = true }), "there was an internal fault"},
		"blind":          {given(func(r *Rank) { r.Mapping = "none" }), "nothing here notices changes of mappings"},
		"blind, caching": {given(func(r *Rank) { r.Mapping, r.Kept = "none", r.Uses }), "; the transport's own cache does"},
		"leave-pinned":   {given(func(r *Rank) { r.Policy = "leave-pinned" }), "policy leave-pinned keeps memory registered."},
		"ucx": {given(func(r *Rank) {
			r.Uses, r.Kept, r.Large, r.Transport, r.TransportSettings = 8, 8, 480, "/usr/lib/ucx/libuct_ib.so.0",
				[]string{"FI_MR_CACHE_MAX_COUNT=0", "UCX_RCACHE_ENABLE=n", "UCX_IB_REG_METHODS=rcache"}
		}), "Nothing was released: UCX's cache is on, with UCX_RCACHE_ENABLE=n, UCX_IB_REG_METHODS=rcache: " +
			"of 8 registrations for 480 large buffers it held 8 when MPI_Finalize began; set UCX_IB_REG_METHODS=direct."},
		"ucx, left on": {given(func(r *Rank) { r.Kept, r.Transport = 44, "libucp.so.0" }),
			"UCX's cache is on, nothing that would turn it off is set: of 44 registrations for 0 large buffers it held 44 " +
				"when MPI_Finalize began; set UCX_RCACHE_ENABLE=n and UCX_IB_REG_METHODS=direct."},
		"it did release": {given(func(r *Rank) { r.HelperDeregs = 1 }), ""},
		"parked at times": {given(func(r *Rank) { r.HelperDeregs, r.Parks, r.FirstParkNs, r.ParkedNs = 9, 2, 5e9, 4e9 }),
			"No idle core at times: the helper was parked from 5.0 s on, for 4.0 s of 13.9 s"},
		"on demand": {given(func(r *Rank) { r.Demand = Demand{Uses: 9, Fresh: 9, RegisterNs: 2e6} }),
			"On demand: 9 uses registered memory for no other, in 2.0 ms: 9 where memory was new each time."},
		"on demand, for two reasons": {given(func(r *Rank) { r.Demand = Demand{Uses: 9, Fresh: 2} }),
			": 7 as no core was idle, 2 where memory was new each time."},
		"quota used up": {given(func(r *Rank) { r.Parks, r.FirstParkNs, r.ParkedNs, r.QuotaUsedUpNs = 1, 3e9, 10.9e9, 9e9 }),
			"Nothing was released: the CPU quota is used up; the helper was parked from 3.0 s on, for 10.9 s of 13.9 s (raise " +
				"the CPU quota"},
		"quota used up at times": {given(func(r *Rank) {
			r.HelperDeregs, r.Parks, r.ParkedNs, r.QuotaUsedUpNs = 9, 2, 4e9, 4e9
		}),
			"The CPU quota is used up at times: the helper was parked"},
		"shared for a quota": {given(func(r *Rank) { r.SharedNs, r.QuotaUsedUpNs = 10e9, 9e9 }), "core (raise the CPU quota)"},
		"shared core": {given(func(r *Rank) { r.SharedNs, r.SharedCPUNs, r.Lost = 10e9, 0.048e9, 40 }),
			"Nothing was released: it would have saved too little memory for the processor time that it takes from the rank: " +
				"the helper has used 0.5 % of its core (leave a core free)."},
		"shared at first":  {given(func(r *Rank) { r.SharedNs, r.Lost = 1e9, 40 }), "40 of 44 uses came faster"},
		"one request left": {given(func(r *Rank) { r.HelperDeregs, r.Kept = 9, 1 }), ""},
		"nothing registered": {Rank{Size: 1, VerbsUsed: true, ThresholdBytes: 64 << 10, Plain: 7},
			"Nothing was registered through Pinwheel: no message of 64.0 KiB or more."},
		"messages that nobody announced": {
			Rank{Size: 1, VerbsUsed: true, ThresholdBytes: 16 << 10, Plain: 55, Passed: 48, PassedBytes: 3 << 20},
			"Nothing was registered through Pinwheel: no MPI call that Pinwheel looks at was given a message of " +
				"16.0 KiB or more, but the transport registered memory past it and gave it back 48 times, " +
				"3.0 MiB in all: what that saves and costs is the transport's doing."},
		"some messages that nobody announced": {
			given(func(r *Rank) { r.HelperDeregs, r.Plain, r.Passed, r.PassedBytes = 9, 8, 1, 65536 }),
			"transport's own: 7; the transport registered memory past it and gave it back once, 64.0 KiB in all"},
		"too short for the watch": {Rank{Size: 1, VerbsUsed: true, ThresholdBytes: 1, Large: 7, Plain: 8, Early: 7},
			"Nothing was registered through Pinwheel: the program ended before changes of mappings were noticed"},
	} {
		got := write(t, c.rank)
		if c.want != "" && !strings.Contains(got, c.want) ||
			c.want == "" && (strings.Contains(got, "Nothing was") || strings.Contains(got, "No idle core")) {
			t.Errorf("%s: want %q in\n%s", name, c.want, got)
		}
		if n := strings.Count(got, "Nothing was"); n > 1 {
			t.Errorf("%s: it says %d times why", name, n)
		}
	}
}

// A job that ends before anything is cached says of a cache that is on what longer ones say.
func TestCacheThatIsOnIsNamedThoughNothingWasRegistered(t *testing.T) {
	keeps := Rank{Rank: 1, Size: 2, VerbsUsed: true, Plain: 4, Early: 4, Kept: 4, Large: 96, Transport: "libuct_ib.so.0",
		TransportSettings: []string{"UCX_RCACHE_ENABLE=n"}}
	first := keeps
	first.Rank, first.Transport = 0, ""
	late := keeps // the watch was open at its end
	late.Rank, late.Size, late.Uses, late.Policy = 2, 3, 2, "pinwheel"
	for want, ranks := range map[string][]Rank{
		"Nothing was registered through Pinwheel: UCX's cache is on, with UCX_RCACHE_ENABLE=n: of 8 registrations": {first, keeps},
		"Nothing was released: UCX's cache is on, with UCX_RCACHE_ENABLE=n: of 14 registrations":                   {first, keeps, late},
	} {
		if got := write(t, ranks...); strings.Count(got, "Nothing was") != 1 || !strings.Contains(got, want) {
			t.Errorf("want %q once in\n%s", want, got)
		}
	}
}

func TestReasonsNameTheRanks(t *testing.T) {
	busy := Rank{Size: 11, Uses: 9, Policy: "pinwheel", Parks: 1, ParkedNs: 2e9, FirstParkNs: 4e9, Seconds: 10}
	var ranks []Rank
	for i := range 10 {
		r := busy
		r.Rank, r.FirstParkNs = i, int64(10-i)*1e9
		ranks = append(ranks, r)
	}
	ranks = append(ranks, Rank{Rank: 10, Size: 11, Uses: 9, HelperDeregs: 4, Policy: "pinwheel"})
	got := write(t, ranks...)
	want := "Nothing was released (10 ranks: 0 to 9): no idle core; the helper was parked from 1.0 s on, for 2.0 s of 10.0 s"
	if !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
}

func TestCacheOfTheTransportIsAWarningIfItShouldBeOff(t *testing.T) {
	r := Rank{Uses: 8, Kept: 8, Large: 480, Transport: "libuct_ib.so.0"}
	if got := r.CacheWarning(); got != "" {
		t.Errorf("nobody asked for it to be off: %q", got)
	}
	r.TransportSettings = []string{"UCX_RCACHE_ENABLE=n"}
	if got := r.CacheWarning(); !strings.HasPrefix(got, "UCX's cache is on, with UCX_RCACHE_ENABLE=n: ") ||
		!strings.HasSuffix(got, "set UCX_IB_REG_METHODS=direct") {
		t.Errorf("%q", got)
	}
	r.TransportSettings = append(r.TransportSettings, "UCX_IB_REG_METHODS=direct")
	if got := r.CacheWarning(); !strings.HasSuffix(got, "this version keeps it all the same") {
		t.Errorf("%q", got)
	}
	if r.Uses, r.Early = 0, 8; !strings.Contains(r.CacheWarning(), "of 8 registrations for 480 large buffers it held 8") {
		t.Errorf("all were made before the watch was open: %q", r.CacheWarning())
	}
	if r.Kept = 3; r.CacheWarning() != "" {
		t.Error("most registrations were given back, and it warns")
	}
}

func TestReportNamesTheRanksThatAreMissing(t *testing.T) {
	for _, r := range []Rank{{Rank: 2, Size: 6, Uses: 9, HelperDeregs: 1}, {Rank: 2, Size: 6}} {
		if got, want := write(t,
			r), "No report (5 ranks: 0 to 1, 3 to 5): killed, ended without MPI_Finalize"; !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	for _, r := range []Rank{{Size: 1}, {Rank: -1, Size: 1 << 40}, {World: "2-0", Size: 3}} {
		if got := write(t, r); strings.Contains(got, "No report") {
			t.Errorf("nothing is missing:\n%s", got)
		}
	}
}

// A rank that prints a report of itself, as under PINWHEEL_STATS=y, misses nobody.
func TestReportOfOneRankMissesNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.txt")
	if err := (Rank{Rank: 1, Size: 2, Uses: 9, HelperDeregs: 1}).Save(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if got := string(text); err != nil || strings.Contains(got, "No report") || !strings.Contains(got, "rank 1, of 2") {
		t.Errorf("%v\n%s", err, got)
	}
}
