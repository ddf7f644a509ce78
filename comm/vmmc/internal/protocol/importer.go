package protocol

import (
	"errors"
	"fmt"

	"pinwheel/comm/vmmc/internal/wire"
)

// Errors with which an import ends.
var (
	ErrNotPermitted     = errors.New("the exporter does not permit it")
	ErrTooManyImporters = errors.New("the export has as many importers as it allows")
	ErrTooManyWaiting   = errors.New("too many imports wait for exports of this peer")
)

// Event is what a frame of the exporter means to an import.
type Event uint8

const (
	Nothing Event = iota
	// Granted: messages may be sent. If the frame is Shared, descriptors belong to it.
	Granted
	// Denied: the import is over. Reason(f.Code) says why.
	Denied
	// Revoked: send nothing more, and Release the import.
	Revoked
)

// Importer has the imports from one exporter, over one connection.
type Importer struct {
	send    func(*wire.Frame)
	last    uint64
	imports map[uint64]*imported
}

type imported struct {
	granted bool
	credits uint64
	limit   uint64       // the most credits
	notify  []wire.Frame // without a credit so far
}

// NewImporter returns an Importer without imports. It gives its frames to send, in the middle of its other
// methods: send must neither call these nor block.
func NewImporter(send func(*wire.Frame)) *Importer {
	return &Importer{send: send, imports: map[uint64]*imported{}}
}

// Import asks for an export and returns the number of the import, by which Receive tells of it.
func (m *Importer) Import(id uint32) (number uint64) {
	m.last++
	m.imports[m.last] = &imported{}
	m.send(&wire.Frame{Type: wire.Import, Number: m.last, Export: id})
	return m.last
}

// Release ends an import in any state. All messages for it must have been sent before; notifications
// without a credit are lost. An import that has ended is ignored.
func (m *Importer) Release(number uint64) {
	if m.imports[number] != nil {
		delete(m.imports, number)
		m.send(&wire.Frame{Type: wire.Release, Number: number})
	}
}

// Notify sends a notification of a message that was sent, or queues it until there is a credit. The
// import must be granted.
func (m *Importer) Notify(number, offset, bytes uint64, tag uint16) {
	i := m.imports[number]
	i.notify = append(i.notify, wire.Frame{Type: wire.Notify, Number: number, Offset: offset, Bytes: bytes, Tag: tag})
	m.spend(i)
}

func (m *Importer) spend(i *imported) {
	n := int(min(i.credits, uint64(len(i.notify))))
	for k := range n {
		m.send(&i.notify[k])
	}
	i.notify = i.notify[n:]
	i.credits -= uint64(n)
}

// Receive takes a frame of the exporter, but for those that concern the connection alone. Frames for an
// import that was released mean Nothing. ErrProtocol ends the connection.
func (m *Importer) Receive(f *wire.Frame) (Event, error) {
	forImports := f.Type == wire.Grant || f.Type == wire.Deny || f.Type == wire.Revoke || f.Type == wire.Credit
	if !forImports || f.Number == 0 || f.Number > m.last {
		return Nothing, fmt.Errorf("%w: frame of type %d for import %d, the last was %d",
			ErrProtocol, f.Type, f.Number, m.last)
	}
	i := m.imports[f.Number]
	switch {
	case i == nil:
		return Nothing, nil
	case f.Type == wire.Grant && !i.granted && f.Bytes > 0 && f.Count > 0:
		i.granted, i.credits, i.limit = true, f.Count, f.Count
		return Granted, nil
	case f.Type == wire.Deny && !i.granted:
		delete(m.imports, f.Number)
		return Denied, nil
	case f.Type == wire.Revoke && i.granted:
		return Revoked, nil
	case f.Type == wire.Credit && i.granted && f.Count <= i.limit-i.credits:
		i.credits += f.Count
		m.spend(i)
		return Nothing, nil
	}
	return Nothing, fmt.Errorf("%w: frame of type %d for import %d", ErrProtocol, f.Type, f.Number)
}

// Reason is the error that a code of a Deny frame stands for.
func Reason(code uint8) error {
	switch code {
	case wire.NotPermitted:
		return ErrNotPermitted
	case wire.TooManyImporters:
		return ErrTooManyImporters
	case wire.TooManyWaiting:
		return ErrTooManyWaiting
	}
	return fmt.Errorf("refused with code %d", code)
}
