package compare

import "fmt"

const (
	// Worthwhile is the share of the cache's memory below which there is little to save.
	Worthwhile = 0.20
	most       = 0.80 // of what can be saved
	dear       = 1.01 // ratio of processor time
)

// Verdict says in sentences what the measures mean. Each is one line.
func (s Summary) Verdict() []string {
	lines := []string{s.memory(), s.cost()}
	for _, why := range s.Reasons {
		lines = append(lines, why+".")
	}
	return append(lines, s.conclusion())
}

func (s Summary) memory() string {
	pinned := func(m Mode) float64 { return s.Of(m).AvgPinnedBytes.Median }
	cache, none, own := pinned(Cache), pinned(None), pinned(Pinwheel)
	if cache == 0 {
		return "No memory was pinned: the job used no RDMA device, or its ranks ran on other nodes."
	}
	if s.Savable < Worthwhile {
		return fmt.Sprintf("There is little to save: "+
			"the job pins %s with the transport's cache, %s without any cache, and %s with Pinwheel.",
			Bytes(cache), Bytes(none), Bytes(own))
	}
	if own > cache {
		return fmt.Sprintf("Pinwheel pins %s, more than the transport's cache with %s; no cache pins %s.",
			Bytes(own), Bytes(cache), Bytes(none))
	}
	return fmt.Sprintf("Pinwheel pins %s where the transport's cache pins %s and no cache %s: "+
		"it saves %.0f %% of what can be saved.",
		Bytes(own), Bytes(cache), Bytes(none), 100*s.CapturedLive.Median)
}

func (s Summary) cost() string {
	change, none := 100*(s.CPU.Median-1), fmt.Sprintf("no cache: %+.1f %%", 100*(s.CPUNone.Median-1))
	switch {
	case s.CPU.Coverage < confidence:
		return fmt.Sprintf("Processor time differed by %+.1f %% (%s), but %s can't show a difference; six can.",
			change, none, count(s.Rounds, "round"))
	case s.CPU.Low > 1:
		return fmt.Sprintf("It takes %.1f %% more processor time than the transport's cache (%s).", change, none)
	case s.CPU.High < 1:
		return fmt.Sprintf("It takes %.1f %% less processor time than the transport's cache (%s).", -change, none)
	}
	return fmt.Sprintf("Processor time shows no difference: %s (%s).", s.CPU.Percent(), none)
}

func (s Summary) conclusion() string {
	saves := s.Savable >= Worthwhile && s.CapturedLive.Median >= most
	cheap := s.CPU.Median <= dear
	switch {
	case s.Savable < Worthwhile && cheap:
		return "Verdict: nothing to gain here, and little to lose."
	case s.Savable < Worthwhile:
		return "Verdict: leave Pinwheel out of this job."
	case saves && cheap:
		return "Verdict: run this job with Pinwheel."
	case saves:
		return "Verdict: Pinwheel saves the memory, for some processor time."
	case s.CapturedLive.Median > 0 && cheap:
		return "Verdict: Pinwheel saves a part of the memory at little cost."
	}
	return "Verdict: Pinwheel does not pay here."
}
