package compare

import (
	"fmt"
	"slices"
	"strings"

	"pinwheel/internal/measure"
)

// Verdict says in sentences what the measures mean, by the rule of the package. Each is one line, and the last one is
// the verdict.
func (s Summary) Verdict() []string {
	if s.Of(Cache).AvgPinnedBytes.Median == 0 {
		return []string{"No memory was pinned: the job used no RDMA device, or its ranks ran on other nodes.",
			"No verdict: there is nothing to compare."}
	}
	var lines []string
	if s.Rounds >= measure.FewestRounds {
		if s.Managed > 0 {
			lines = append(lines, s.sentence(Pinwheel, Cache), s.sentence(Pinwheel, None))
		}
		lines = append(lines, s.sentence(None, Cache))
	}
	for _, why := range s.Reasons {
		lines = append(lines, why+".")
	}
	return append(lines, s.conclusion())
}

// sentence says what a mode takes beside another.
func (s Summary) sentence(m, other Mode) string {
	v := s.Versus(m, other)
	var parts []string
	for _, p := range []struct {
		c    change
		says string
	}{{less, "less "}, {more, "more "}, {equal, "as much "}} {
		if names := v.which(p.c); names != "" {
			parts = append(parts, p.says+names)
		}
	}
	open := v.which(unknown)
	switch {
	case len(parts) == 0:
		return fmt.Sprintf("Beside %s, what %s takes is not known.", other, m)
	case open != "":
		open = "; " + open + ": not known"
	}
	return fmt.Sprintf("Beside %s, %s takes %s%s.", other, m, strings.Join(parts, ", "), open)
}

// BeatenBy are the modes that take less of something than Pinwheel and, as far as that is known, no more of the rest.
func (s Summary) BeatenBy() (modes []Mode) {
	for _, b := range s.Beside {
		if b.Mode == Pinwheel && s.Managed > 0 && b.which(more) != "" && b.which(less) == "" {
			modes = append(modes, b.Other)
		}
	}
	return modes
}

// conclusion is the verdict on Pinwheel.
func (s Summary) conclusion() string {
	toCache, toNone := s.Versus(Pinwheel, Cache), s.Versus(Pinwheel, None)
	cache, none := toCache.relation(), toNone.relation()
	switch {
	case s.Managed == 0:
		return "Verdict: leave Pinwheel out: no registration went through it, so whatever differs from the transport's" +
			" cache is the doing of no cache." + s.instead()
	case cache == worse || none == worse:
		var by []string
		if cache == worse {
			by = append(by, "the transport's cache takes less "+toCache.which(more))
		}
		if none == worse {
			by = append(by, "no cache takes less "+toNone.which(more))
		}
		return "Verdict: leave Pinwheel out: " + list(by) + ", and no more of the rest." + s.instead()
	case cache == alike:
		return "Verdict: leave Pinwheel out: the transport's cache takes no more." + s.instead()
	case none == alike:
		return "Verdict: leave Pinwheel out: no cache takes no more." + s.instead()
	case cache == unsure || none == unsure:
		return s.noVerdict()
	case cache == better && none == better:
		return "Verdict: run this job with Pinwheel."
	}
	return "Verdict: a trade: " + trade(Cache, toCache) + "; " + trade(None, toNone) + "."
}

// trade says what Pinwheel takes less and more of than a mode that does not take less of everything.
func trade(other Mode, v Versus) string {
	text := fmt.Sprintf("beside %s, Pinwheel saves %s", other, v.which(less))
	if costs := v.which(more); costs != "" {
		text += " and costs " + costs
	}
	return text
}

// instead says which of the two others is the better one, if that is known.
func (s Summary) instead() string {
	v := s.Versus(None, Cache)
	switch v.relation() {
	case better:
		return " No cache is better than the transport's."
	case worse:
		return " The transport's cache is better than none."
	case traded:
		return fmt.Sprintf(" Without its cache, the transport saves %s and takes more %s.",
			v.which(less), v.which(more))
	}
	return ""
}

// noVerdict says why there is none.
func (s Summary) noVerdict() string {
	if s.Rounds < measure.FewestRounds {
		return fmt.Sprintf("No verdict: %s can't show a difference; %d can.", count(s.Rounds, "round"), measure.FewestRounds)
	}
	var open []string
	for i, q := range quantities {
		for _, v := range []Versus{s.Versus(Pinwheel, Cache), s.Versus(Pinwheel, None)} {
			if v.relation() == unsure && v.changes()[i] == unknown && !slices.Contains(open, q) {
				open = append(open, q)
			}
		}
	}
	return fmt.Sprintf("No verdict: whether Pinwheel takes more or less %s is open."+
		" More rounds, on a quiet machine, may tell.", list(open))
}

// list joins names for a sentence.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
