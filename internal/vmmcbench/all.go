package vmmcbench

import "pinwheel/vmmc"

// Sizes of messages in a row.
var sizes = []int{8, 4 << 10, 1 << 20} // to 1 MiB

// all are the measurements, in the order of the tables.
func all() (ms []measurement) {
	add := func(kind, by, over string, bytes, messages int, begin func(*stage) (func() error, error)) {
		ms = append(ms, measurement{Result{Kind: kind, By: by, Over: over, Bytes: bytes}, messages, begin})
	}
	for _, over := range []string{shared, tcp} {
		add(Latency, automatic, over, 8, 2, wordThereAndBack(over, (*opposite).storeWord))
		add(Latency, deliberate, over, 8, 2, wordThereAndBack(over, (*opposite).sendWord))
	}
	for _, over := range []string{unixSocket, tcp} {
		add(Latency, socket, over, 8, 2, socketThereAndBack(over))
	}
	for _, size := range sizes {
		for _, over := range []string{shared, unixSocket, tcp} {
			add(Bandwidth, deliberate, over, size, 1, sends(over, size, vmmc.SendOptions{}))
		}
		for _, over := range []string{unixSocket, tcp} {
			add(Bandwidth, socket, over, size, 1, writes(over, size))
		}
	}
	for _, over := range []string{shared, unixSocket, tcp} {
		add(Bandwidth, notified, over, 8, 1, sends(over, 8, vmmc.SendOptions{Notify: true}))
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
	return ms
}
