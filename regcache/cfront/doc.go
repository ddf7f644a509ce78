// Package cfront gives C code in the same process the use of a
// regcache.Cache: cfront.h is its C API. A hit happens in C alone, by the inline
// functions of table.h; only what is no hit calls Go.
//
// # Ownership
//
// Export keeps a cache alive until Unexport. A front belongs to the C thread
// that attached it and is given back when that thread ends; references may be
// put by any thread of the same cache.
//
// # Caveats
//
// A slow call enters the Go runtime, which costs a microsecond the first time
// on a thread, and which must not happen in a signal handler, nor in a child
// of fork before exec.
package cfront
