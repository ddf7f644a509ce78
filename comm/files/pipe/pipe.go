package pipe

// Kind is what a Step does with its chunk.
type Kind uint8

const (
	// Fetch copies the bytes into the slot of the ring, or looks whether the file still has those that are mapped.
	Fetch Kind = iota
	// Register acquires a registration of the slot, or of the mapping.
	Register
	// Post gives the chunk to the device, which will complete it.
	Post
	// Release ends the use of the registration.
	Release
)

// Chunk is a part of the transfer.
type Chunk struct {
	Source  Source
	Slot    int   // of the ring if Source is Copy; a number below Depth that no other chunk has if it is Map
	At, Len int64 // bytes, from the beginning of the transfer
}

// Step is something that has to be done.
type Step struct {
	Kind  Kind
	Chunk Chunk
}

// state is where a chunk is. A step is being done in the states that end in -ing.
type state uint8

const (
	free state = iota
	toFetch
	fetching
	toRegister
	registering
	ready
	posting
	posted
	toRelease
	releasing
)

type slot struct {
	state state
	chunk Chunk
}

// post is a chunk that was posted. It may be complete before those that were posted earlier.
type post struct {
	at, end int64
	done    bool
}

// Pipe is one transfer. Make one with New.
type Pipe struct {
	shape Shape
	bytes int64
	err   error // the first
	ended bool  // by Stop: nothing is posted any more

	next      int64 // the first byte that no chunk has
	copyUntil int64 // bytes before this one are copied: the registration of their pages was refused
	slots     []slot
	maps      int // slots[:maps] are of chunks that are mapped, the others are those of the ring
	ringBytes int64
	live      int64 // bytes of all chunks

	ready    []*slot // in the order of their bytes
	prepared int     // chunks that are not posted yet
	held     bool    // the device takes no more until a completion, or until Again
	starved  bool    // nothing can be registered until a release, or if it is passing until Again
	passing  bool
	posts    []post // those without a completion, and those after the first of them
	waiting  int    // those without a completion
	stats    Stats
}

// Stats count what a Pipe has done so far.
type Stats struct {
	SentBytes     int64 // from the beginning of the transfer, without a gap
	Registrations int64
	Refused       int64 // registrations for which there was no room
	CopiedBytes   int64 // fetched into the ring
}

// New returns a transfer of n bytes. It fails if the shape makes no sense.
func New(n int64, s Shape) (*Pipe, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.ChunkBytes == 0 {
		s.ChunkBytes = max(n, 1)
	}
	p := &Pipe{shape: s, bytes: max(n, 0), ringBytes: s.ChunkBytes}
	ring := s.Depth
	if s.Source == Map {
		p.maps, ring = s.Depth, Static.Shape.Depth
		p.ringBytes = min(s.ChunkBytes, Static.Shape.ChunkBytes)
	}
	p.slots = make([]slot, p.maps+ring)
	return p, nil
}

// Ring returns how many slots the ring has, and the size of each in bytes. Where chunks are mapped, it is used only
// when a registration was refused, so that it may be made at the first Fetch of a chunk that is copied.
func (p *Pipe) Ring() (slots int, slotBytes int64) { return len(p.slots) - p.maps, p.ringBytes }

// Shape returns the numbers of this transfer.
func (p *Pipe) Shape() Shape { return p.shape }

// Stats returns the counts so far.
func (p *Pipe) Stats() Stats { return p.stats }

// Err returns the first error.
func (p *Pipe) Err() error { return p.err }

// Outstanding returns how many chunks were posted and have no completion yet.
func (p *Pipe) Outstanding() int { return p.waiting }

// Finished reports whether nothing is under way any more: all was sent, or an error ended the transfer. No memory is
// registered then but what the policy keeps.
func (p *Pipe) Finished() bool { return p.live == 0 && (p.ended || p.next == p.bytes) }

// Stop ends the transfer with an error: nothing more is posted. What was posted still completes.
func (p *Pipe) Stop(err error) {
	p.failed(err)
	p.ended, p.ready = true, nil
	for i := range p.slots {
		switch s := &p.slots[i]; s.state {
		case toFetch, toRegister:
			p.free(s)
		case ready:
			s.state = toRelease
		}
	}
}

func (p *Pipe) failed(err error) {
	if p.err == nil {
		p.err = err
	}
}

// Next returns what has to be done next, and false if there is nothing before a chunk is complete, or Again was called.
// Done must be called when it is done, before Next is called again.
func (p *Pipe) Next() (Step, bool) {
	if len(p.ready) > 0 && !p.held {
		s := p.ready[0]
		p.ready = p.ready[1:]
		return s.begin(Post, posting), true
	}
	p.cut()
	// First what the device waits for.
	for i := range p.slots {
		switch s := &p.slots[i]; {
		case s.state == toFetch:
			return s.begin(Fetch, fetching), true
		case s.state == toRegister && !p.starved:
			return s.begin(Register, registering), true
		}
	}
	for i := range p.slots {
		if s := &p.slots[i]; s.state == toRelease {
			return s.begin(Release, releasing), true
		}
	}
	return Step{}, false
}

func (s *slot) begin(k Kind, during state) Step {
	s.state = during
	return Step{k, s.chunk}
}
