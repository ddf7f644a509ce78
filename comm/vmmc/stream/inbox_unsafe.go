package stream

import (
	"sync/atomic"
	"unsafe"
)

// inbox is memory that the peer writes to. It is only read here.
type inbox struct {
	data []byte // as the node returned it
	ring []byte
	// Of sync/atomic: the peer stores these, each by one message.
	tail   *atomic.Uint64 // bytes that were put into the ring, ever
	head   *atomic.Uint64 // bytes that were taken out of the ring of the peer, ever
	state  *atomic.Uint64 // of the peer
	answer *atomic.Uint64 // to a request: 1<<32 and the number of the listener's inbox. To that: 1
	looks  *atomic.Uint64 // whether the peer looks by itself at what changes in its inbox
}

// Where these are, in bytes.
const (
	tailAt   = 0
	headAt   = 8
	stateAt  = 16
	answerAt = 24
	looksAt  = 32
	ringAt   = 64
)

func inboxIn(data []byte) *inbox {
	at := func(off int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&data[off])) }
	return &inbox{
		data: data, ring: data[ringAt:], tail: at(tailAt), head: at(headAt), state: at(stateAt), answer: at(answerAt),
		looks: at(looksAt),
	}
}
