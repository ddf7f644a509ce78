package predictor

// Idea is a part of the default policy that can be left out, to see what it is worth. Ideas are a
// bit set.
type Idea uint

// The ideas of Pinwheel and of the Scheduler that belongs to it.
const (
	Gates     Idea = 1 << iota // a region is not registered before the event was seen that announces its need
	MissAlarm                  // a need that had to wait makes due what is due soon
	Abandoned                  // a region is released when the program has gone on without it
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
		{MissAlarm, "miss alarm"},
		{Abandoned, "release of the abandoned"},
	}
}
