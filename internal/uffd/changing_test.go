package uffd

import (
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// The kernel says that a change is under way from before it until its event is read.
func TestChangeIsUnderWayUntilItsEventIsRead(t *testing.T) {
	testwait.Bound(t)
	fd, err := Open(EventUnmap | WPUnpopulated | WPAsync)
	if err != nil {
		t.Skipf("this kernel tracks no writes: %v", err)
	}
	defer unix.Close(fd)
	b, err := unix.Mmap(-1, 0, int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	r := mem.RangeOf(b)
	if err := Register(fd, r); err != nil {
		t.Fatal(err)
	}
	if IsChanging(fd) {
		t.Error("before the change")
	}
	unmapped := make(chan error, 1)
	go func() { // munmap(2) itself: nothing of Go may wait for its end
		_, _, errno := unix.Syscall(unix.SYS_MUNMAP, uintptr(r.Start), uintptr(r.Len()), 0)
		unmapped <- errnoOrNil(errno)
	}()
	testwait.Until(t, "the change is under way", func() bool { return IsChanging(fd) })
	var event [32]byte // struct uffd_msg
	testwait.Until(t, "the event is there", func() bool {
		n, err := unix.Read(fd, event[:])
		return err == nil && n == len(event)
	})
	if err := testwait.Receive(t, "the end of munmap", unmapped); err != nil {
		t.Fatal(err)
	}
	if IsChanging(fd) {
		t.Error("after it")
	}
}

func errnoOrNil(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
