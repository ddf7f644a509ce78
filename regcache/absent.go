package regcache

// absentList holds the absent regions, in the order of their release.
type absentList struct{ first, last *region }

// links are the neighbours of a region in an absentList.
type links struct{ before, after *region }

func (l *absentList) push(g *region) {
	g.absent = links{before: l.last}
	if l.last == nil {
		l.first = g
	} else {
		l.last.absent.after = g
	}
	l.last = g
}

func (l *absentList) remove(g *region) {
	at := g.absent
	if at.before == nil {
		l.first = at.after
	} else {
		at.before.absent.after = at.after
	}
	if at.after == nil {
		l.last = at.before
	} else {
		at.after.absent.before = at.before
	}
	g.absent = links{}
}
