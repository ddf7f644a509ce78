// Package engine is the part that both faces of the project share: the Go package
// pinwheel, and the server of the preload library and of pinwheel.h
// (mpishim/server). It assembles predictor, scheduler, helper thread and the search
// for an idle core over the caches of a process. It also counts pinned bytes, tells
// the user once of each problem, and makes the report.
//
// # Ownership
//
// An Engine belongs to its face, which closes it before the caches. The face also
// owns the caches and the rings of the communication threads. StartHelper must return
// before Attach, Detach, HelperStats, Accuracy, Report and Close are called. All
// methods are otherwise safe for concurrent use.
package engine
