package monitor

import "slices"

// Kept is how far back a History goes. Rates are means over rateSeconds, over which the budget of a
// helper's processor time is kept as well.
const (
	Kept        = 60 // seconds
	rateSeconds = 10
)

// History are the Looks of the last minute. It belongs to one goroutine. The zero value is empty.
type History struct {
	tracks map[identity][]Rank // what each rank published, oldest first
}

// identity tells a rank from one of the same number before it, and from a later process of the same PID.
type identity struct {
	job          string
	pid, manager int
	startNs      int64
}

func identify(job string, r *Rank) identity { return identity{job, r.PID, r.Manager, r.startNs} }

// Add takes in a Look. Ranks that it lacks are forgotten.
func (h *History) Add(l Look) {
	tracks := map[identity][]Rank{}
	for _, j := range l.Jobs {
		for _, r := range j.Ranks {
			id := identify(j.ID, &r)
			track := h.tracks[id]
			if n := len(track); n == 0 || track[n-1].RunSeconds < r.RunSeconds { // else it is the same again
				track = append(track, r)
			}
			// One before the last minute stays: it says how that began.
			old := 0
			for old+1 < len(track) && track[old+1].RunSeconds <= r.RunSeconds-Kept {
				old++
			}
			tracks[id] = slices.Delete(track, 0, old)
		}
	}
	h.tracks = tracks
}

// Rates are what a rank did in a second, on average.
type Rates struct {
	Hits, Late  float64
	HelperShare float64 // processor time of the helper, as a share of one processor
	Stall       float64 // waiting for registrations, as a share of the time
	Cost        float64 // report.Cost.SpentNs, as a share of the time
}

// Rates returns the rates of a rank of the last Look over the last ten seconds, or since it was first seen,
// or, if it was seen only once, since its start.
func (h *History) Rates(job string, r *Rank) Rates {
	var before Rank
	track := h.tracks[identify(job, r)]
	for i := range track {
		if before = track[i]; before.RunSeconds > r.RunSeconds-rateSeconds-0.5 {
			break
		}
	}
	if before.RunSeconds >= r.RunSeconds {
		before = Rank{}
	}
	return ratesBetween(&before, r)
}

func ratesBetween(before, now *Rank) Rates {
	seconds := now.RunSeconds - before.RunSeconds
	if seconds <= 0 {
		return Rates{}
	}
	return Rates{
		Hits:        float64(now.Hits-before.Hits) / seconds,
		Late:        float64(now.LateUses-before.LateUses) / seconds,
		HelperShare: float64(now.Helper.CPUNs-before.Helper.CPUNs) / 1e9 / seconds,
		Stall:       float64(now.StallNs-before.StallNs) / 1e9 / seconds,
		Cost:        float64(now.Cost.SpentNs()-before.Cost.SpentNs()) / 1e9 / seconds,
	}
}

// Trend returns the pinned bytes of a rank of the last Look in n equal parts of the last minute, the latest last:
// the most that the rank published in each. They are -1 in those before the rank was first seen.
func (h *History) Trend(job string, r *Rank, n int) []int64 {
	trend := make([]int64, n)
	track := h.tracks[identify(job, r)]
	at, last := 0, int64(-1)
	for i := range trend {
		end := r.RunSeconds - Kept*float64(n-1-i)/float64(n)
		most := int64(-1)
		for ; at < len(track) && track[at].RunSeconds <= end; at++ {
			last = track[at].PinnedBytes
			most = max(most, last)
		}
		if most < 0 {
			most = last // nothing new
		}
		trend[i] = most
	}
	return trend
}
