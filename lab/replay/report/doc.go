// Package report makes results/: tables and figures of what every policy does
// with every trace, beside the numbers of the paper "Scalable Memory
// Registration for High Performance Networks Using Helper Threads" (CF'11),
// which it calls the paper.
//
// Everything in virtual time is a function of the traces, the costs and the
// code, and gives the same bytes again. Real runs are measured elsewhere and
// handed in.
package report
