package node

import (
	"fmt"
	"time"
)

// BoardWords is the size of a board.
const BoardWords = 48

// boardLock is the byte whose lock protects the board.
const boardLock = 1 + slots

// maxBoardPause is the longest pause between attempts to lock the board. A member that loads programs keeps it for some
// ten milliseconds.
const maxBoardPause = 8 * time.Millisecond

// UpdateBoard calls update with words that all members of the job share, while no other member does; what it leaves
// there is what the next one finds. All are 0 at first. Any member may have ended since it wrote them. It calls nothing
// and fails if another member keeps the board for longer than patience, and after Close, which must not be called
// meanwhile. Only one goroutine of a process may call it at a time.
func (m *Member) UpdateBoard(patience time.Duration, update func(words *[BoardWords]uint64)) error {
	m.mu.Lock()
	s, err := m.seg, m.usable()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.lock(boardLock, patience, maxBoardPause); err != nil {
		return fmt.Errorf("the board: %w", err)
	}
	defer s.unlock(boardLock)
	var words [BoardWords]uint64
	for i := range words {
		words[i] = s.mem.load(headerBoard + i)
	}
	update(&words)
	for i, w := range words {
		s.mem.store(headerBoard+i, w)
	}
	return nil
}
