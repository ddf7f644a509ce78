package engine

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"pinwheel/helper"
	"pinwheel/internal/account"
	"pinwheel/internal/clock"
	"pinwheel/internal/fault"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// Engine serves one face of the project in one process.
type Engine struct {
	warn, debug func(message string)
	pinned      *account.Mean

	// All nil without a helper.
	helper *helper.Thread
	placer *helper.Placer
	scored *predictor.Scored
	where  string // the helper runs, for reports

	mu   sync.Mutex // protects said; warn and debug are called without it
	said map[string]bool
}

// New returns an Engine without a helper. warn is told in one line that
// Pinwheel does less than it should, debug where a fault of ours happened, in many lines; debug may be nil.
func New(warn, debug func(message string)) *Engine {
	clock.Calibrate()
	return &Engine{warn: warn, debug: debug, pinned: account.NewMean(), said: make(map[string]bool)}
}

// Metered returns a provider whose registrations are accounted for as pinned by this process.
func (e *Engine) Metered(p verbs.Provider) account.Metered {
	return account.Metered{Provider: p, Pinned: e.pinned}
}

// Pinned returns the peak and the mean of what was pinned through providers that are Metered, in bytes.
func (e *Engine) Pinned() (peak, mean int64) { return e.pinned.Read() }

// Warn tells the user something, the first time for each kind of message.
func (e *Engine) Warn(kind, message string) {
	if e.isFirst(kind) {
		message = strings.ReplaceAll(message, "\n", "; ")
		if tell(e.warn, message) != nil {
			fmt.Fprintln(os.Stderr, "pinwheel: "+message)
		}
	}
}

// Fault tells the user what happened and how Pinwheel goes on: of the first fault in one line, of the first
// with each consequence with its stack to those who asked for that.
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
