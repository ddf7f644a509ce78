package main

/*
#include "bind.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync"

	"pinwheel/mem"
)

// plain accounts in the group for what C threads register past the caches. They count it in
// plain_bytes, and ask when it exceeds plain_room, which is what was charged to the group, and what there was no room
// for.
//
// A thread adds to plain_bytes before it reads plain_room, and the server reads plain_bytes after it has
// lowered plain_room: so one of the two sees the other.
type plain struct {
	mu      sync.Mutex // protects the writing of plain_room
	charged int64      // to the group, in bytes
}

// startPlain begins to account if the node has a budget. What the transport has registered before
// counts, whether there is room for it or not.
func (s *server) startPlain() {
	if !s.group.HasShare() {
		return
	}
	at64(&s.sh.plain_room).Store(0)
	if s.roomForPlain() != nil {
		s.exceedForPlain()
	}
}

// exceedForPlain has the transport register what there is no room for. What it needs it must get, or the program ends;
// so the budget bounds only the rest.
func (s *server) exceedForPlain() {
	s.plain.mu.Lock()
	defer s.plain.mu.Unlock()
	used := at64(&s.sh.plain_bytes).Load()
	at64(&s.sh.plain_room).Store(max(used, at64(&s.sh.plain_room).Load()))
	if over := int64(used) - s.plain.charged; over > 0 {
		setting, who := "PINWHEEL_NODE_BUDGET", "node"
		if s.budgetBytes-s.group.Bytes() < over {
			setting, who = "PINWHEEL_BUDGET", "process"
		}
		s.engine.Warn("plain", fmt.Sprintf("%s leaves no room for %s that the transport registers for itself."+
			" It gets them all the same, and the %s is over its budget by that", setting, mem.FormatBytes(uint64(over)), who))
	}
}

// roomForPlain makes room for what the threads are about to register.
func (s *server) roomForPlain() error {
	if s.group == nil {
		return nil
	}
	s.plain.mu.Lock()
	defer s.plain.mu.Unlock()
	room := at64(&s.sh.plain_room).Load()
	used := min(at64(&s.sh.plain_bytes).Load(), math.MaxInt64)
	if used <= room {
		return nil
	}
	lacking := int64(used - room)
	if err := s.group.Charge(lacking); err != nil {
		return err
	}
	s.plain.charged += lacking
	at64(&s.sh.plain_room).Store(room + uint64(lacking))
	return nil
}

// plainSlack is room that is kept although nothing uses it, so that few registrations ask: 1 MiB.
const plainSlack = 1 << 20

// settlePlain charges what there was no room for, as far as there is some by now, and gives back the room that is not
// used any more.
func (s *server) settlePlain() {
	s.plain.mu.Lock()
	defer s.plain.mu.Unlock()
	room := at64(&s.sh.plain_room).Load()
	used := at64(&s.sh.plain_bytes).Load()
	if room == math.MaxUint64 { // none is accounted
		return
	}
	s.chargeOwed(int64(min(used, room, math.MaxInt64)) - s.plain.charged)
	if room < used+2*plainSlack { // little is left over
		return
	}
	lower := max(used, min(used+plainSlack, uint64(s.plain.charged)))
	at64(&s.sh.plain_room).Store(lower)
	if at64(&s.sh.plain_bytes).Load() > lower { // somebody has used it meanwhile
		at64(&s.sh.plain_room).Store(room)
		return
	}
	tooMuch := max(s.plain.charged-int64(lower), 0) // what there was no room for goes first
	s.plain.charged -= tooMuch
	s.group.Uncharge(tooMuch)
}

// chargeOwed charges as much as there is room for, to within plainSlack. It is called with mu of plain.
func (s *server) chargeOwed(owed int64) {
	for bytes := owed; bytes > 0; bytes = min(bytes, owed) {
		if s.group.TryCharge(bytes) == nil {
			s.plain.charged += bytes
			owed -= bytes
		} else if bytes /= 2; bytes < plainSlack {
			return
		}
	}
}
