package predictor

// Idea is a part of the default policy that can be left out, to see what it is worth. Ideas are a
// bit set.
type Idea uint

// The ideas of Pinwheel and of the Scheduler that belongs to it.
const (
	Gates        Idea = 1 << iota // a region is not registered before the event was seen that announces its need
	ExpectedCost                  // deadlines weigh the memory that an early registration costs against what a late one does
	MissAlarm                     // a need that had to wait makes due what is due soon
	Tokens                        // a bound on what wrong predictions may cost
	Silences                      // a region is released in a long silence, whatever is predicted
	Abandoned                     // a region is released when the program has gone on without it
	Overdue                       // a region is released when a need that was predicted with confidence does not come
)

// IdeaName is an Idea and what tables call it.
type IdeaName struct {
	Idea
	Name string
}

// Ideas returns all ideas, in the order of a table.
func Ideas() []IdeaName {
	return []IdeaName{
		{Gates, "gates"},
		{ExpectedCost, "expected cost"},
		{MissAlarm, "miss alarm"},
		{Tokens, "tokens"},
		{Silences, "release in silences"},
		{Abandoned, "release of the abandoned"},
		{Overdue, "release of the overdue"},
	}
}
