package vmwatch

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bpfCall is bpf(2) with part of union bpf_attr, <linux/bpf.h>, Linux 5.15, in which pointers are pointers: so
// what they point to stays where it is. The library's calls look at more than is needed here: at every object that
// is opened, and at what the kernel can do.
func bpfCall[T any](what string, command uintptr, attr *T) (int, error) {
	for {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EAGAIN, unix.EINTR: // a signal has come
		default:
			return -1, os.NewSyscallError("bpf "+what, errno)
		}
	}
}

// bpfObjectID returns the number by which others find a map, a program or a link.
func bpfObjectID(fd int) (uint32, error) {
	var info struct{ kind, id uint32 } // each kind of object has it there
	attr := struct {
		fd, bytes uint32
		info      unsafe.Pointer
	}{uint32(fd), uint32(unsafe.Sizeof(info)), unsafe.Pointer(&info)}
	_, err := bpfCall("OBJ_GET_INFO_BY_FD", unix.BPF_OBJ_GET_INFO_BY_FD, &attr)
	return info.id, err
}

// openBPFObject opens the object with a number; command says which kind it is. It needs CAP_SYS_ADMIN.
func openBPFObject(command uintptr, id uint32) (int, error) {
	attr := struct{ id, next, flags uint32 }{id: id}
	return bpfCall(fmt.Sprintf("GET_FD_BY_ID %d", id), command, &attr) // close-on-exec, as all of BPF
}

// newLog makes the map in which programs tell this process of its changes.
func newLog() (fd int, err error) {
	attr := struct{ kind, key, value, entries, flags uint32 }{
		unix.BPF_MAP_TYPE_ARRAY, 4, uint32(unsafe.Sizeof(bpfShared{})), 1, unix.BPF_F_MMAPABLE,
	}
	return bpfCall("MAP_CREATE", unix.BPF_MAP_CREATE, &attr)
}

// bpfElement is the part of union bpf_attr for the elements of maps.
type bpfElement struct {
	fd         uint64
	key, value unsafe.Pointer
	flags      uint64
}

// addLog makes a log that of an address space, and fails with EEXIST if that has one. deleteLog ends that.
func addLog(logs int, space uint64, log int) error {
	value := uint32(log)
	_, err := bpfCall("MAP_UPDATE_ELEM", unix.BPF_MAP_UPDATE_ELEM,
		&bpfElement{uint64(logs), unsafe.Pointer(&space), unsafe.Pointer(&value), unix.BPF_NOEXIST})
	return err
}

func deleteLog(logs int, space uint64) error {
	_, err := bpfCall("MAP_DELETE_ELEM", unix.BPF_MAP_DELETE_ELEM, &bpfElement{uint64(logs), unsafe.Pointer(&space), nil, 0})
	return err
}

// inspected mirrors struct inspected of bpf/watch.bpf.c.
type inspected struct {
	operations uint64 // those of the kind of file
	space      uint64 // the address space that the file shows, if it is a pagemap
	own        uint64 // the caller's address space
	holders    uint64 // how many descriptors and mappings of all processes hold the file
}

// inspectFile looks at an open file of this process, by a program that leaves what it finds in a map.
func inspectFile(program, captured, file int) (found inspected, err error) {
	args := [...]uint64{uint64(file)}
	run := struct {
		fd        uint32
		_         [9]uint32
		argsBytes uint32
		_         uint32
		args      unsafe.Pointer
		_         [6]uint32
	}{fd: uint32(program), argsBytes: uint32(unsafe.Sizeof(args)), args: unsafe.Pointer(&args)}
	if _, err := bpfCall("PROG_TEST_RUN", unix.BPF_PROG_TEST_RUN, &run); err != nil {
		return found, fmt.Errorf("look at a file: %w", err)
	}
	key := uint32(0)
	_, err = bpfCall("MAP_LOOKUP_ELEM", unix.BPF_MAP_LOOKUP_ELEM,
		&bpfElement{uint64(captured), unsafe.Pointer(&key), unsafe.Pointer(&found), 0})
	return found, err
}
