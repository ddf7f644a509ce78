//go:build linux && cgo

package ibv

// #cgo CFLAGS: -Wall -Wextra
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "ibv.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
)

// Load opens the library, once; later calls return what the first returned.
var Load = sync.OnceValue(func() error {
	if why := C.v_load(); why != nil {
		return fmt.Errorf("libibverbs is missing (install libibverbs1 and ibverbs-providers): %s", C.GoString(why))
	}
	return nil
})

// errno returns err of a two-result cgo call as an errno. The C library may
// fail without setting it; that must not read as success.
func errno(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return e
	}
	return syscall.EIO
}

// Devices returns the names of the RDMA devices of this machine in the
// library's order; ENOSYS where the kernel has no RDMA at all. Load must have
// succeeded.
func Devices() ([]string, error) {
	var names []string
	err := eachDevice(func(name string, _ *C.struct_v_device) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// errStop ends eachDevice early without an error.
var errStop = errors.New("stop")

func eachDevice(f func(name string, d *C.struct_v_device) error) error {
	var n C.int
	list, err := C.v_get_device_list(&n)
	if list == nil {
		return errno(err)
	}
	defer C.v_free_device_list(list)
	for i := range n {
		d := C.v_device_at(list, i)
		if err := f(C.GoString(C.v_get_device_name(d)), d); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}
