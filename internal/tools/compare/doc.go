// Package compare runs one MPI job with the transport's own registration cache, with
// none, and with Pinwheel, under its other policies as well if asked to, and says what each of them takes.
//
// Job.Run is one run. It preloads the same library in every mode (mpishim/meter), which counts the
// processor time of the ranks: until MPI_Init returns, until MPI_Finalize is entered, and
// after that. Pinned memory is sampled from this process, every 10 ms, so that sampling takes
// none of the time that is measured. Summarize makes the measures of any number of runs:
//
//   - captured_live, the share of what can be saved that a mode saved: (cache - mode) / (cache - none)
//     of mean pinned memory;
//   - what the transport pins for itself, whoever keeps registrations: the least after the peak, without a cache;
//   - of each mode beside each other one, in runs of the same round: pinned memory, processor time and run time; see
//     Versus.
//
// A median has a 95 % interval by ranks; see Estimate.
//
// # The verdict
//
// The interval of each of the three quantities says that a mode takes less, more or as much as another (within 5 % of
// the memory that the transport's cache pins, and 1 % of time), or nothing. So one mode stands to another:
//
//	better   less of something, and more of nothing
//	worse    more of something, and less of nothing
//	alike    as much of everything
//	traded   less of something, and more of something else
//	unsure   otherwise: it depends on a quantity that is not known
//
// Pinwheel is to be run if it is better than both others, and to be left out if either is better or takes no more than
// it. It is a trade if there is one with either and neither is unsure. Else there is no verdict. With fewer than six
// rounds, nothing is known. If no registration went through Pinwheel, it is to be left out, whatever the measures say:
// then it only turned the cache off.
//
// Whether there is a verdict or not, Pinwheel is beaten by a mode that takes less of something and, as far as that is
// known, no more of the rest.
//
// Rounds may also have runs of the policies on-demand and paper. They are measured beside Pinwheel and the cache, and may
// beat it, but the verdict is on Pinwheel beside the transport's own two ways.
//
// # Caveats
//
// Memory is that of the ranks on this node. Other nodes must share the directory of the
// job, or their processor time is missing too, which is an error.
package compare
