//go:build linux && cgo

package rdma

import (
	"fmt"
	"sync"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// EventKind is an enum ibv_event_type of <infiniband/verbs.h>.
type EventKind int

const (
	EventCQError          EventKind = 0
	EventQPFatal          EventKind = 1
	EventQPRequestError   EventKind = 2
	EventQPAccessError    EventKind = 3
	EventConnected        EventKind = 4
	EventDeviceFatal      EventKind = 8
	EventPortActive       EventKind = 9
	EventPortError        EventKind = 10
	EventLIDChange        EventKind = 11
	EventPKeyChange       EventKind = 12
	EventSMChange         EventKind = 13
	EventLastWQE          EventKind = 16
	EventClientReregister EventKind = 17
	EventGIDChange        EventKind = 18
)

var eventNames = map[EventKind]string{
	EventCQError:          "completion queue overrun",
	EventQPFatal:          "queue pair failed",
	EventQPRequestError:   "invalid request on a queue pair",
	EventQPAccessError:    "access violation on a queue pair",
	EventConnected:        "first message of a connection",
	EventDeviceFatal:      "device failed",
	EventPortActive:       "port active",
	EventPortError:        "port down",
	EventLIDChange:        "LID changed",
	EventPKeyChange:       "partition keys changed",
	EventSMChange:         "subnet manager changed",
	EventLastWQE:          "last request of a queue pair reached",
	EventClientReregister: "subnet manager asks clients to register again",
	EventGIDChange:        "GIDs changed",
}

func (k EventKind) String() string {
	if s, ok := eventNames[k]; ok {
		return s
	}
	return fmt.Sprintf("event %d", int(k))
}

// ofPort reports whether the event concerns a port.
func (k EventKind) ofPort() bool {
	return k >= EventPortActive && k <= EventSMChange || k >= EventClientReregister
}

// Event is an asynchronous event of a device.
type Event struct {
	Kind EventKind
	Port uint8 // of an event that concerns a port, else 0
}

// Watch calls f with every asynchronous event of the device (see
// ibv_get_async_event(3)), one at a time and from one goroutine, until stop is
// called. stop waits for a call of f under way, so f must not call it; it is called once. A
// device has one watch at a time: two would take each other's events.
func (d *Device) Watch(f func(Event)) (stop func(), err error) {
	const op = "fcntl of the event descriptor"
	if !d.retain() {
		return nil, &verbs.Error{Op: op, Kind: verbs.ErrClosed}
	}
	file, err := d.ctx.AsyncFile()
	if err != nil {
		d.release()
		return nil, verbs.Fail(op, mem.Range{}, errnoOf(err))
	}
	raw, err := file.SyscallConn()
	if err != nil {
		d.release()
		return nil, fmt.Errorf("rdma events of %s: %w", d.info.Name, err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		// Read waits in the runtime's poller and returns when the file is closed.
		_ = raw.Read(func(uintptr) bool {
			for {
				kind, port, err := d.ctx.NextAsyncEvent()
				if err != nil {
					return false // no more of them: wait
				}
				e := Event{Kind: EventKind(kind)}
				if e.Kind.ofPort() {
					e.Port = uint8(port)
				}
				f(e)
			}
		})
	})
	return func() {
		_ = file.Close() // of a duplicate: cannot matter
		done.Wait()
		d.release()
	}, nil
}
