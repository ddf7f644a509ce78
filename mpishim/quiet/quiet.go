//go:build cgo

// Package quiet keeps the Go runtime of a shared library from changing the process that has loaded it. A library
// imports it, and that is all. In a program it does nothing.
//
//   - No handler of a signal is installed or changed: the runtime is told that it has done so. Only a library that
//     threads of the program enter keeps Go's handler of SIGPIPE, which leaves to the program what is its own.
//   - The threads of the runtime block every signal, for as long as they live: what is sent to the process reaches a
//     thread of the program, or whoever waits for it in sigwaitinfo(2) or reads it from a signalfd(2). Only the two
//     signals that the C library needs for itself stay, and those that nothing blocks.
//   - The runtime sends no signal to its own threads. It does so elsewhere to preempt them (SIGURG), and no GODEBUG of
//     the user's turns that on. A loop of ours that calls no function delays the garbage collector, and nothing else.
//   - A thread that can't be created now is created later. The runtime would abort the program.
//   - The limit of open files, which package os raises, is put back.
//
// A fault in Go code, a nil pointer for example, ends the process: there is no handler that makes a panic of it.
package quiet

/*
#include "quiet.h"
*/
import "C"

import _ "os" // whose init raises the limit of open files

func init() { C.pw_quiet_put_back_limit() }

// Reached reports whether the runtime is as this package says. It is not under a Go that keeps its tables in another
// way. It is for tests, and for a library that would rather not serve then.
func Reached() bool { return C.pw_quiet_reached() != 0 }
