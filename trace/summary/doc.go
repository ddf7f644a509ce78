// Package summary says what is in a trace: per rank the operations, the
// buffers that a registration cache would see, and the call sites, with the
// periods in which buffers are used again and how much these vary.
//
// # Caveats
//
// Periods are measured on two clocks. Wall-clock periods are as recorded and
// contain the noise of the machine, which for ranks that shared cores is
// large; processor-time periods contain the computation only. Quantiles are
// exact to 0.1 %.
package summary
