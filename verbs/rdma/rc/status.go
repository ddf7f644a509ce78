package rc

import "fmt"

// Status is the outcome of a request: enum ibv_wc_status of
// <infiniband/verbs.h>, InfiniBand Architecture Specification, volume 1,
// section 11.6.2 (completion return status).
type Status int

const (
	StatusSuccess          Status = 0
	StatusLocalLength      Status = 1
	StatusLocalQPOperation Status = 2
	StatusLocalProtection  Status = 4 // the local key is not, or no longer, good for this access
	StatusFlushed          Status = 5 // the queue pair had failed before this request's turn came
	StatusBadResponse      Status = 7
	StatusLocalAccess      Status = 8
	StatusRemoteInvalid    Status = 9
	StatusRemoteAccess     Status = 10 // the remote key is not, or no longer, good for this access
	StatusRemoteOperation  Status = 11
	StatusRetriesExceeded  Status = 12 // the peer does not answer
	StatusReceiverNotReady Status = 13
	StatusFatal            Status = 19
	StatusResponseTimeout  Status = 20
	StatusGeneral          Status = 21
)

var statusNames = map[Status]string{
	StatusSuccess:          "success",
	StatusLocalLength:      "local length error",
	StatusLocalQPOperation: "local queue pair operation error",
	StatusLocalProtection:  "local protection error",
	StatusFlushed:          "flushed: the connection had failed before",
	StatusBadResponse:      "bad response",
	StatusLocalAccess:      "local access error",
	StatusRemoteInvalid:    "remote invalid request error",
	StatusRemoteAccess:     "remote access error",
	StatusRemoteOperation:  "remote operation error",
	StatusRetriesExceeded:  "transport retries exceeded: the peer does not answer",
	StatusReceiverNotReady: "receiver not ready retries exceeded",
	StatusFatal:            "fatal error",
	StatusResponseTimeout:  "response timeout",
	StatusGeneral:          "general error",
}

func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("completion status %d", int(s))
}

// Completion tells that a request has ended and its buffer is the caller's again.
type Completion struct {
	ID     uint64 // as posted
	Status Status
	Bytes  uint32 // received; only of a successful Receive
	Vendor uint32 // the driver's own code of an error
}

// Err returns nil for a success, else a *CompletionError.
func (c Completion) Err() error {
	if c.Status == StatusSuccess {
		return nil
	}
	return &CompletionError{c}
}

// CompletionError is a request that failed. The connection has failed with
// it: all later requests complete with StatusFlushed.
type CompletionError struct{ Completion }

func (e *CompletionError) Error() string {
	return fmt.Sprintf("rc: request %d: %v (vendor code %#x)", e.ID, e.Status, e.Vendor)
}
