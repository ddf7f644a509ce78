package main

/*
#include "objects.h"
*/
import "C"

import (
	"context"
	"errors"
	"syscall"
	"time"
	"unsafe"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/mem"
)

// codes are the errors that have one in the header. The first that fits counts.
var codes = []struct {
	err  error
	code syscall.Errno
}{
	{vmmc.ErrAddress, syscall.EINVAL},
	{vmmc.ErrBounds, syscall.ERANGE},
	{vmmc.ErrIdentity, syscall.EACCES},
	{vmmc.ErrNotPermitted, syscall.EPERM},
	{vmmc.ErrTooManyImporters, syscall.EUSERS},
	{vmmc.ErrTooManyExports, syscall.ENOSPC},
	{vmmc.ErrNoBroker, syscall.ECONNREFUSED},
	{broker.ErrRefused, syscall.ECONNREFUSED},
	{mem.ErrOverflow, syscall.EOVERFLOW},
	{vmmc.ErrExported, syscall.EEXIST},
	{vmmc.ErrInUse, syscall.EBUSY},
	{vmmc.ErrNotExported, syscall.ENOENT},
	{vmmc.ErrUnexported, syscall.ESTALE},
	{vmmc.ErrUnimported, syscall.ENOTCONN},
	{vmmc.ErrUnmapped, syscall.ENOTCONN},
	{vmmc.ErrPeerGone, syscall.ECONNRESET},
	{vmmc.ErrTooManyOps, syscall.EAGAIN},
	{vmmc.ErrTooManyWaiting, syscall.EAGAIN},
	{vmmc.ErrClosed, syscall.ESHUTDOWN},
	{context.DeadlineExceeded, syscall.ETIMEDOUT},
}

var errArguments = errors.New("vmmc: arguments that make no sense")

// status is what a function of C returns for an error, and keeps its text. It panics never: a panic would end
// the program.
func status(err error) C.int {
	if err != nil {
		text := err.Error()
		C.vmmc_keep_error((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	}
	return code(err)
}

// code is the number of an error.
func code(err error) C.int {
	if err == nil {
		return 0
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return -C.int(c.code)
		}
	}
	if code := syscall.Errno(0); errors.As(err, &code) && code > 0 {
		return -C.int(code)
	}
	if errors.Is(err, errArguments) {
		return -C.EINVAL
	}
	return -C.EIO
}

// invalid is the status of arguments that make no sense.
func invalid() C.int { return status(errArguments) }

// within returns a context for a timeout in milliseconds.
func within(ms C.int) (context.Context, context.CancelFunc) {
	if ms < 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
}
