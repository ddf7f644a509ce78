// Package lease decides when the memory of an export is registered for an importer that is not on the same
// machine. Registered memory is pinned, so an importer has it only while it sends, or is about to: it holds a
// lease. A Holder is at the importer. It yields the lease of an import that stays idle, and renews it ahead of the
// next message, by the scheduler and the predictor that decide the same about local memory (package schedule). A
// Lessor is at the exporter. It keeps the leases of all importers within a budget, and recalls some to make room
// for others.
//
// Both are state machines without clock, goroutine and connection. The same calls give the same decisions. Their
// driver holds a lock across each call and carries messages in order. But a registration takes its time: a Recall may
// overtake Granted.
//
//	importer            exporter
//	Renew  ------------> registers, at once or when there is room
//	       <------------ Granted, or Refused if it can't be registered
//	messages ----------> into the registered memory. Those without a lease go another way
//	       <------------ Recall, if others need the room
//	Yield  ------------> deregisters
//
// An importer yields only what it holds, and only when all its messages have arrived. So no message can meet memory
// that is not registered any more, however long anything takes: a clock decides what is worth it, never what is safe.
package lease
