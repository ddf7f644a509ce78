// Package ibv binds the calls of libibverbs that Pinwheel needs, one Go
// method for each, and decides nothing: verbs/rdma and verbs/rdma/rc do.
//
// # How it is bound
//
// libibverbs.so.1 is opened with dlopen at the first use, and the part of its
// binary interface that is used is declared in abi.h. The alternatives were
// linking with -libverbs, which stops the build where the development package
// is missing and the program where the library is missing, and a build tag,
// with which most binaries that people have would lack RDMA. With dlopen one
// binary runs everywhere and says in one line what it misses. The price, the
// declarations, is small: the interface is stable since 2008, and a test
// compiles abi_check.c against the real header wherever that is found.
//
// # Errors
//
// Failed calls return the syscall.Errno and nothing else; callers know the
// arguments and wrap it.
//
// # Caveats
//
// Objects follow the rules of libibverbs: destroyed exactly once, children
// before parents, never used afterwards; nothing here checks that. Calls are
// thread-safe as far as libibverbs' are: all but two destructions of one
// object. A CQ is polled by one goroutine at a time.
package ibv
