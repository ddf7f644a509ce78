package predictor

// bufferID is a buffer's part in the program, the same in every run: the call site that used it first, and
// its ordinal among the buffers that were first used there. A buffer that goes leaves its identity to the
// next one that is first used there, and with it all that was learned.
type bufferID struct {
	site    uint64
	ordinal uint32
}

func (r bufferID) hash() uint64 { return mix(r.site, uint64(r.ordinal)) }

// bufferIDs gives out identities.
type bufferIDs struct{ sites map[uint64]*ordinals }

// ordinals are those of one site that are taken.
type ordinals struct {
	used []*bufferUse
	free []uint32
}

func newBufferIDs() bufferIDs { return bufferIDs{make(map[uint64]*ordinals)} }

func (s *bufferIDs) take(site uint64) (bufferID, *bufferUse) {
	o := s.sites[site]
	if o == nil {
		o = &ordinals{}
		s.sites[site] = o
	}
	if n := len(o.free); n > 0 {
		ordinal := o.free[n-1]
		o.free = o.free[:n-1]
		return bufferID{site, ordinal}, o.used[ordinal]
	}
	u := new(bufferUse)
	o.used = append(o.used, u)
	return bufferID{site, uint32(len(o.used) - 1)}, u
}

// bufferUse is how a buffer was used in the whole run.
type bufferUse struct {
	uses  uint64
	bytes int64
}

// add counts a use and returns how many there were.
func (u *bufferUse) add(bytes int64) uint64 {
	u.uses++
	u.bytes = bytes
	return u.uses
}

func (s *bufferIDs) giveBack(r bufferID) {
	if o := s.sites[r.site]; o != nil {
		o.free = append(o.free, r.ordinal)
	}
}
