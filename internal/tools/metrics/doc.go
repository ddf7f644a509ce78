// Package metrics gives what the ranks of this node have published (package monitor) to Prometheus: as text, in a
// file for node_exporter's textfile collector, or over HTTP ("pinwheel metrics").
//
// The form of the output is Prometheus's text format, which client_golang writes: it escapes, orders, checks every
// sample against its declaration, and agrees with a scraper on compression. table.go declares the metrics.
//
// # Labels
//
// The series of a rank have the labels job_id, rank, pid and manager. It is not "job", which Prometheus itself gives
// to all that it scrapes: ours would become exported_job. The PID tells ranks that a job starts anew, or with
// MPI_Comm_spawn, from those of the same number, so no counter of a series ever falls. A process in Go may have
// several Managers, numbered from 1.
//
// # Caveats
//
// Whoever can open a loopback port of this node can read the metrics: counters and names of programs. A Unix socket
// is open for its owner only, as is the shared memory that all comes from.
package metrics
