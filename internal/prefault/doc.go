// Package prefault provides the pages of memory that is about to be registered, with several threads at the same time.
//
// A registration faults in pages that were never touched, and clears each, on the one thread that registers. For a pool
// of many GiB that is most of the time that it takes. Run does it beforehand with madvise(MADV_POPULATE_WRITE),
// slice by slice, and where the kernel lacks that (before Linux 5.14) by touching each page. Neither changes what is in
// the memory.
//
// # Threads
//
// The first thread takes the place of the caller, which sleeps meanwhile. Others run only on processors that
//
//   - the affinity mask of the calling thread permits, which is never widened;
//   - have been idle, with their whole core, while the first one worked for placement.LookTime;
//   - no helper of another process has claimed, and that are not kept free of other work (isolcpus=, nohz_full=);
//   - the quotas of the control groups leave time for.
//
// That is what the workers of a helper do, but for the mask. Who knows better sets Options.Threads: that many run, idle
// processors or not, and never more than the mask has processors.
//
// Where there are several NUMA nodes, a slice is touched on the node on which its pages are to lie: that of the memory
// policy of its mapping (mbind(2)) or of the process if it names one node, else the node of the caller, where a plain
// registration would put them, too. If the policy names several nodes, any processor does.
package prefault
