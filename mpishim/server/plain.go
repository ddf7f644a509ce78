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
// plain_bytes, and ask when it exceeds plain_room, which is what was charged to the group.
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
	if err := s.roomForPlain(); err != nil {
		used := at64(&s.sh.plain_bytes).Load()
		at64(&s.sh.plain_room).Store(used)
		s.engine.Warn("plain", fmt.Sprintf("the transport itself has registered %s, which is more than PINWHEEL_NODE_BUDGET"+
			" leaves to this rank: the node is over its budget by that", mem.FormatBytes(used)))
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

// settlePlain gives back the room that is not used any more.
func (s *server) settlePlain() {
	s.plain.mu.Lock()
	defer s.plain.mu.Unlock()
	room := at64(&s.sh.plain_room).Load()
	used := at64(&s.sh.plain_bytes).Load()
	if s.plain.charged == 0 || room < used+2*plainSlack {
		return
	}
	lower := max(used+plainSlack, room-uint64(s.plain.charged))
	at64(&s.sh.plain_room).Store(lower)
	if at64(&s.sh.plain_bytes).Load() > lower { // somebody has used it meanwhile
		at64(&s.sh.plain_room).Store(room)
		return
	}
	s.plain.charged -= int64(room - lower)
	s.group.Uncharge(int64(room - lower))
}
