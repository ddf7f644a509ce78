// Package engine assembles predictor, scheduler, helper thread and the search for an
// idle core over the caches of a process. The front ends share it: the Go package
// pinwheel, and the server of the preload library and of pinwheel.h (mpishim/server).
// It also counts pinned bytes, tells the user once of each problem, and makes the
// report.
//
// # Ownership
//
// An Engine belongs to its front end, which closes it before the caches. The front end
// also owns the caches and the rings of the communication threads. StartHelper must
// return before Attach, Detach, HelperStats, Accuracy, Report and Close are called.
// All methods are otherwise safe for concurrent use.
package engine
