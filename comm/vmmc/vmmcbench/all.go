package vmmcbench

import (
	"time"

	"pinwheel/comm/vmmc"
)

// Sizes of messages in a row.
var sizes = []int{8, 4 << 10, 1 << 20} // to 1 MiB

// Periods of messages in a loop.
var periods = []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond}

// all are the measurements, in the order of the tables.
func all(has equipment) (ms []measurement) {
	add := func(kind, by, over string, bytes, messages int, begin func(*stage) (func() error, error)) {
		r := Result{Kind: kind, By: by, Over: over, Bytes: bytes}
		ms = append(ms, measurement{Result: r, messages: messages, begin: begin})
	}
	whole := func(r Result, f func(*stage, time.Duration) (figures, error)) {
		ms = append(ms, measurement{Result: r, whole: f})
	}
	byNodes := func(over ...string) []string { // with RDMA where there is a device
		if has.rdma {
			over = append(over, overRDMA)
		}
		return over
	}
	for _, over := range byNodes(shared, tcp) {
		add(Latency, automatic, over, 8, 2, wordThereAndBack(over, (*opposite).storeWord))
		add(Latency, deliberate, over, 8, 2, wordThereAndBack(over, (*opposite).sendWord))
	}
	for _, over := range []string{unixSocket, tcp} {
		add(Latency, socket, over, 8, 2, socketThereAndBack(over))
	}
	for _, size := range sizes {
		for _, over := range byNodes(shared, tcp) {
			add(Bandwidth, automatic, over, size, 1, stores(over, size))
		}
		for _, over := range byNodes(shared, unixSocket, tcp) {
			add(Bandwidth, deliberate, over, size, 1, sends(over, size, vmmc.SendOptions{}))
		}
		for _, over := range []string{unixSocket, tcp} {
			add(Bandwidth, socket, over, size, 1, writes(over, size))
		}
	}
	for _, over := range byNodes(shared, unixSocket, tcp) {
		add(Bandwidth, notified, over, 8, 1, sends(over, 8, vmmc.SendOptions{Notify: true}))
	}
	if has.perftest {
		whole(Result{Kind: Latency, By: perftest, Over: overRDMA, Bytes: 8}, writeLatency.run(8))
		for _, size := range sizes {
			whole(Result{Kind: Bandwidth, By: perftest, Over: overRDMA, Bytes: size}, writeBandwidth.run(size))
		}
	}
	if has.ucx {
		whole(Result{Kind: Bandwidth, By: ucxPut, Over: overRDMA, Bytes: 1 << 20}, putBandwidth.run(1<<20))
	}
	for _, over := range []string{shared, tcp} {
		add(Call, ourCalls, over, 0, 1, nullCalls(over))
	}
	for _, over := range []string{unixSocket, tcp} {
		add(Call, theirs, over, 0, 1, theirCalls(over))
	}
	for _, over := range []string{shared, tcp} {
		add(HTTP, streams, over, pageBytes, 1, pages(streams, over))
	}
	for _, over := range []string{unixSocket, tcp} {
		add(HTTP, socket, over, pageBytes, 1, pages(socket, over))
	}
	for _, dirty := range []int{0, 1, 64, 4096} {
		add(Flush, automatic, tcp, flushedBytes, 1, flushes(tcp, dirty))
		ms[len(ms)-1].Pages = dirty
	}
	if has.rdma {
		for _, p := range periods {
			r := Result{Kind: Periodic, By: deliberate, Over: overRDMA, Bytes: periodicBytes}
			r.Lease = &Lease{PeriodNS: float64(p)}
			whole(r, periodic(p))
		}
	}
	return ms
}
