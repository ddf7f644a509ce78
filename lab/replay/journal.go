package replay

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

// Journal is what happened to the registrations of one rank under a policy that keeps them in the
// registration cache: all that it takes to say afterwards where memory was pinned in vain. It grows with the
// run. Times are those of the replay, in nanoseconds. It belongs to its replay until that has ended.
type Journal struct {
	Registrations []Registration // as they began
	Uses          []RegionUse    // as they ended
	Forecasts     []Forecast     // as they were made; one that says the same as the one before is left out
	EndNs         int64          // when the rank finished

	handles map[uint64]int // of the registrations that are there: index in Registrations
	latest  map[mem.RegionID]Forecast
	closed  bool
}

// Registration is one registration, from its begin to the end of its deregistration.
type Registration struct {
	Region            mem.RegionID // 0 if it did not become a region's
	Range             mem.Range
	ByHelper          bool  // else by the communication path
	BeganNs, ReadyNs  int64 // the registering
	ReleaseNs, GoneNs int64 // the deregistering; Never
}

// RegionUse is one completed use of a region.
type RegionUse struct {
	Region mem.RegionID // 0 if it was copied: no room under the budget
	Range  mem.Range    // what was needed, in whole pages
	NeedNs int64        // when the communication path asked for it
	EndNs  int64        // when it gave it back
	Missed bool         // the communication path had to register it
	Waited bool         // it waited for the helper, who was registering it
}

// Forecast is what was predicted of a region from a time on.
type Forecast struct {
	Region    mem.RegionID
	MadeNs    int64
	Predicted bool // else nothing is known of its next need
	predictor.Prediction
}

// Never is the time of what does not happen.
const Never = never

// NewJournal returns an empty Journal.
func NewJournal() *Journal {
	return &Journal{handles: map[uint64]int{}, latest: map[mem.RegionID]Forecast{}}
}

// registered notes a registration by its handle. Its region is not known yet.
func (j *Journal) registered(handle uint64, r mem.Range, beganNs, readyNs int64) {
	if j == nil {
		return
	}
	j.handles[handle] = len(j.Registrations)
	j.Registrations = append(j.Registrations, Registration{Range: r, BeganNs: beganNs, ReadyNs: readyNs, ReleaseNs: Never, GoneNs: Never})
}

// belongs says whose registration it is.
func (j *Journal) belongs(handle uint64, id mem.RegionID, byHelper bool) {
	if j == nil {
		return
	}
	if i, ok := j.handles[handle]; ok && j.Registrations[i].Region == 0 {
		j.Registrations[i].Region, j.Registrations[i].ByHelper = id, byHelper
	}
}

func (j *Journal) deregistered(handle uint64, releaseNs, goneNs int64) {
	if j == nil || j.closed {
		return
	}
	if i, ok := j.handles[handle]; ok {
		j.Registrations[i].ReleaseNs, j.Registrations[i].GoneNs = releaseNs, goneNs
		delete(j.handles, handle)
	}
}

func (j *Journal) used(u RegionUse) {
	if j != nil {
		j.Uses = append(j.Uses, u)
	}
}

// close ends the journal with its rank: what the cache gives up afterwards is not the policy's doing.
func (j *Journal) close(endNs int64) {
	if j != nil {
		j.EndNs, j.closed = endNs, true
	}
}

// journaled is a Predictor whose predictions go into a journal.
type journaled struct {
	predictor.Predictor
	journal *Journal
	nowNs   *int64 // of the replay
}

func (p *journaled) Observe(u predictor.Use) {
	p.Predictor.Observe(u)
	for _, id := range p.Changed() {
		f := Forecast{Region: id, MadeNs: *p.nowNs}
		f.Prediction, f.Predicted = p.Next(id, *p.nowNs)
		last, any := p.journal.latest[id]
		if any && last.Predicted == f.Predicted && last.Prediction == f.Prediction {
			continue
		}
		p.journal.latest[id] = f
		p.journal.Forecasts = append(p.journal.Forecasts, f)
	}
}
