package engine

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/internal/fault"
	"pinwheel/predictor"
)

// Engine serves one face of the project in one process.
type Engine struct {
	warn, debug func(message string)
	pinned      *pinnedBytes

	// All nil without a helper.
	helper *helper.Thread
	placer *helper.Placer
	scored *predictor.Scored
	where  string // the helper runs, for reports

	mu   sync.Mutex // protects said; warn and debug are called without it
	said map[string]bool
}

// New returns an Engine without a helper. warn gets a line whenever Pinwheel does
// less than it should; debug, unless it is nil, gets the stack of a fault.
func New(warn, debug func(message string)) *Engine {
	clock.Calibrate()
	return &Engine{warn: warn, debug: debug, pinned: newPinnedBytes(), said: make(map[string]bool)}
}

// Warn tells the user something, the first time for each kind of message.
func (e *Engine) Warn(kind, message string) {
	if e.isFirst(kind) {
		message = strings.ReplaceAll(message, "\n", "; ")
		if tell(e.warn, message) != nil {
			fmt.Fprintln(os.Stderr, "pinwheel: "+message)
		}
	}
}

// Fault tells the user of the first fault in one line, and how Pinwheel goes on. debug
// gets the stack, once for each way of going on.
func (e *Engine) Fault(f *fault.Fault, goingOn string) {
	message := fmt.Sprintf("%v; %s", f, goingOn)
	e.Warn("fault", message+" (PINWHEEL_LOG=debug says where)")
	if e.debug != nil && e.isFirst("fault: "+goingOn) {
		_ = tell(e.debug, fmt.Sprintf("%s\n%s", message, f.Stack))
	}
}

func (e *Engine) isFirst(kind string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.said[kind]
	e.said[kind] = true
	return first
}

// tell gives a function of the program's a message. It fails if that panics.
func tell(whom func(string), message string) error {
	return fault.Contain(func() error { whom(message); return nil })
}

// Close stops the helper. What is registered stays so. It may be called more than once.
func (e *Engine) Close() error {
	if e.placer != nil {
		e.placer.Close()
	}
	if e.helper != nil {
		return e.helper.Close()
	}
	return nil
}
