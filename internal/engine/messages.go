package engine

import (
	"fmt"
	"strings"

	"pinwheel/internal/console"
	"pinwheel/internal/fault"
)

// Warn tells the user something, the first time for each kind of message.
func (e *Engine) Warn(kind, message string) {
	if e.isFirst(kind) {
		message = strings.ReplaceAll(message, "\n", "; ")
		if tell(e.warn, message) != nil {
			console.Write("pinwheel: " + message + "\n")
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
