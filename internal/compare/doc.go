// Package compare runs one MPI job with the transport's own registration cache, with
// none, and with Pinwheel, and says what each of them takes.
//
// Job.Run is one run. It preloads the same library in every mode (mpishim/meter), which counts the
// processor time of the ranks: until MPI_Init returns, until MPI_Finalize is entered, and
// after that. Pinned memory is sampled from this process, every 10 ms, so that sampling takes
// none of the time that is measured. Summarize makes the measures of any number of runs:
//
//   - captured_live, the share of what can be saved that Pinwheel saved: (cache - pinwheel) / (cache - none)
//     of mean pinned memory, and
//   - ratios of processor time and run time, of runs of the same round.
//
// A median has a 95 % interval by ranks; see Estimate.
//
// # Caveats
//
// Memory is that of the ranks on this node. Other nodes must share the directory of the
// job, or their processor time is missing too, which is an error.
package compare
