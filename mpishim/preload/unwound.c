/*
 * MPI calls that were left without a return, because an error handler has jumped out or an exception
 * has passed. Later calls of the program are not nested in them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

#include "call.h"

typedef _Unwind_Reason_Code (*backtrace_fn)(_Unwind_Trace_Fn, void *);

/* _Unwind_Backtrace is in libgcc, which a C program may not have loaded and may lack. */
static backtrace_fn backtrace_of_libgcc(void)
{
	static backtrace_fn found;
	backtrace_fn f = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
	void *lib;

	if (!f && !(f = (backtrace_fn)dlsym(RTLD_DEFAULT, "_Unwind_Backtrace")) && (lib = dlopen("libgcc_s.so.1", RTLD_LAZY)))
		f = (backtrace_fn)dlsym(lib, "_Unwind_Backtrace");
	__atomic_store_n(&found, f, __ATOMIC_RELEASE);
	return f;
}

struct walk {
	uintptr_t inner, outer;
	const void *ours;
	unsigned frames;
	int is_inside; /* a wrapper further out was seen */
	int is_past;   /* the whole way to the outer call was seen */
};

static const void *library_of(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Called for every frame, from the inside out. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
	struct walk *w = data;
	uintptr_t called_at = (uintptr_t)_Unwind_GetCFA(context); /* its stack pointer, then */

	if (called_at > w->outer)
		w->is_past = 1;
	else if (called_at > w->inner && library_of((const void *)_Unwind_GetIP(context)) == w->ours)
		w->is_inside = 1;
	return w->is_inside || w->is_past || w->frames++ > 1000 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Whether an address is in the MPI library. Few addresses are asked about: those of calls from inside MPI. */
static int is_of_mpi(const void *address)
{
	static uintptr_t known[64]; /* the address, twice, and the answer */
	uintptr_t *at = &known[(uintptr_t)address * 0x9e3779b97f4a7c15ull >> 58], have = __atomic_load_n(at, __ATOMIC_RELAXED);
	Dl_info info;
	const char *base;
	int is;

	if (have >> 1 == (uintptr_t)address)
		return have & 1;
	if (!dladdr(address, &info) || !info.dli_fname)
		return 0;
	base = strrchr(info.dli_fname, '/');
	base = base ? base + 1 : info.dli_fname;
	/* libmpi.so.40, libmpich.so.12, libmpi_abi.so.0; plug-ins of Open MPI, and the inside of its version 6 */
	is = !strncmp(base, "libmpi", 6) || !strncmp(base, "mca_", 4) || !strncmp(base, "libopen_mpi", 11);
	__atomic_store_n(at, (uintptr_t)address << 1 | (uintptr_t)is, __ATOMIC_RELAXED);
	return is;
}

__attribute__((noinline)) int pw_was_unwound(void **outer, void **frame)
{
	struct walk w = {.inner = (uintptr_t)frame, .outer = (uintptr_t)outer};
	backtrace_fn backtrace;

	if (frame >= outer)
		return 1; /* nested calls have frames below */
	if (is_of_mpi(frame[1]) || !(backtrace = backtrace_of_libgcc()))
		return 0;
	/* The program calls, perhaps from a callback that MPI has called. The stack tells. */
	w.ours = library_of((const void *)pw_was_unwound);
	backtrace(step, &w);
	return w.is_past;
}
