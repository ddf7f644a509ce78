// Package engine is what both faces of the project share: the Go package
// pinwheel, and the preload library and pinwheel.h (mpishim/server). It assembles
// predictor, scheduler, helper thread and the search for an idle core over the
// caches of a process, accounts for what is pinned, says once what went wrong,
// and makes the report.
//
// # Ownership
//
// An Engine belongs to its face, which closes it before the caches. The caches
// and the rings of the communication threads stay the face's. All methods are
// safe for concurrent use, but StartHelper comes before all others and Close last.
package engine
