package predictor

// role is a buffer's part in the program, the same in every run: the call site that used it first, and
// its ordinal among the buffers that were first used there. A buffer that goes leaves its role to the
// next one that is first used there, and with it all that was learned.
type role struct {
	site    uint64
	ordinal uint32
}

func (r role) hash() uint64 { return mix(r.site, uint64(r.ordinal)) }

// roles gives out roles.
type roles struct{ sites map[uint64]*ordinals }

// ordinals are those of one site that are taken.
type ordinals struct {
	used []*roleUse
	free []uint32
}

func newRoles() roles { return roles{make(map[uint64]*ordinals)} }

func (s *roles) take(site uint64) (role, *roleUse) {
	o := s.sites[site]
	if o == nil {
		o = &ordinals{}
		s.sites[site] = o
	}
	if n := len(o.free); n > 0 {
		ordinal := o.free[n-1]
		o.free = o.free[:n-1]
		return role{site, ordinal}, o.used[ordinal]
	}
	u := new(roleUse)
	o.used = append(o.used, u)
	return role{site, uint32(len(o.used) - 1)}, u
}

// roleUse is how a role was used in the whole run.
type roleUse struct {
	uses  uint64
	bytes int64
}

// add counts a use and returns how many there were.
func (u *roleUse) add(bytes int64) uint64 {
	u.uses++
	u.bytes = bytes
	return u.uses
}

func (s *roles) giveBack(r role) {
	if o := s.sites[r.site]; o != nil {
		o.free = append(o.free, r.ordinal)
	}
}
