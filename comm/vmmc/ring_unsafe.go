package vmmc

import (
	"sync/atomic"
	"unsafe"
)

// ringIn is the ring in mapped memory of ringBytes bytes, which begins at a page.
func ringIn(data []byte, credits uint64) *ring {
	return &ring{
		data:    data,
		tail:    (*atomic.Uint64)(unsafe.Pointer(&data[0])),
		asleep:  (*atomic.Uint32)(unsafe.Pointer(&data[asleepAt])),
		given:   (*atomic.Uint64)(unsafe.Pointer(&data[givenAt])),
		waits:   (*atomic.Uint32)(unsafe.Pointer(&data[waitsAt])),
		entries: unsafe.Slice((*entry)(unsafe.Pointer(&data[entriesAt])), credits),
	}
}

const _ = uint(entryBytes-unsafe.Sizeof(entry{})) + uint(unsafe.Sizeof(entry{})-entryBytes) // they are equal
