/*
 * pinwheel_watch.h - tells a registration cache when memory that it has registered was mapped anew.
 *
 * A registration pins pages. If the program unmaps, moves or discards the memory, the registration
 * names the old pages still, and a transfer through it sends old data. A cache of registrations
 * subscribes to each range before it registers it, and asks whether it is valid at each hit:
 *
 *     pinwheel_watch_subscribe(watch, address, bytes, entry, &range);
 *     ... register the memory ...
 *     pinwheel_watch_registered(range);     -EAGAIN: deregister, unsubscribe, and try again
 *     ... each hit: if (!pinwheel_watch_valid(range)), then it is a miss ...
 *     ... deregister the memory ...
 *     pinwheel_watch_unsubscribe(range);
 *
 * libfabric's own cache does so with a monitor: see the end. Link with -lpinwheel-watch.
 *
 * The library contains a Go runtime, which starts when the library is loaded; where ulimit -v leaves no
 * room for it, the program does not start. Its threads block all signals, as does a thread of the program
 * while it is in Go. No handler is installed, and none needs SA_ONSTACK. A thread that has called a
 * function has an alternate signal stack, if it had none. The library stays loaded until the process ends.
 *
 * Threads. Any thread may call any function at any time, also with the same object, unless the
 * function frees that object: then no other call with it may be under way or follow.
 *
 * Fork. Nothing tells of what a child does to its memory. There, no range is valid, and all else
 * fails with -ECHILD.
 *
 * Errors. Functions return 0, or a negative errno if nothing else is said, and set no errno:
 *
 *   -EINVAL   arguments that make no sense, also NULL for an object
 *   -ENOTSUP  no change of this memory would be noticed: register it for each use. Or the mechanism
 *             asked for does not work here
 *   -EAGAIN   the memory was mapped anew meanwhile
 *   -ECHILD   this is a forked child
 *   -EIO      a fault of the library: treat it as -ENOTSUP
 *   others    what the kernel said
 */
#ifndef PINWHEEL_WATCH_H
#define PINWHEEL_WATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects. Their content is the library's. */
typedef struct pinwheel_watch pinwheel_watch;
typedef struct pinwheel_watch_range pinwheel_watch_range;

/* Options of a watch. Set size, and zero the rest: zero stands for a default. */
typedef struct pinwheel_watch_options {
	size_t size;           /* sizeof(pinwheel_watch_options) */
	const char *mechanism; /* as PINWHEEL_WATCH has it, which is the default: auto, bpf, uffd, pfn, none */
	const char *service;   /* socket of the node's watch service, or "off"; NULL: as PINWHEEL_WATCHD has it */
} pinwheel_watch_options;

/*
 * Watches the mappings of this process. options may be NULL; strings are copied. *watch is freed by
 * pinwheel_watch_close. Where nothing can be watched, mechanism auto opens a watch all the same, all
 * of whose subscriptions fail, and one line to standard error says so (unless PINWHEEL_LOG=off).
 *
 * The first of a process takes 10 ms of processor time, and up to 300 ms on a busy node.
 */
int pinwheel_watch_open(const pinwheel_watch_options *options, pinwheel_watch **watch);

/* Unsubscribes from what is left, which frees the ranges, and frees the watch. */
int pinwheel_watch_close(pinwheel_watch *watch);

/*
 * Copies to text, for people, by which mechanism changes are noticed, what it does not notice, and why
 * others were not taken, in one line each. It is cut if it has not room in size bytes with the final zero.
 */
int pinwheel_watch_describe(pinwheel_watch *watch, char *text, size_t size);

/*
 * Begins to watch the whole pages of a range, before it is registered. Ranges may overlap or be equal.
 * entry is what pinwheel_watch_drain returns for it, as the entry of the cache. *range is freed by
 * pinwheel_watch_unsubscribe. Some microseconds.
 */
int pinwheel_watch_subscribe(pinwheel_watch *watch, const void *address, size_t bytes, void *entry,
			     pinwheel_watch_range **range);

/*
 * Call it once, after the memory was registered. From then on the range may be valid.
 *
 * Returns -EAGAIN if the memory was mapped anew since pinwheel_watch_subscribe, or if pages of it were
 * not there before: another try may succeed. -ENOTSUP for memory of a device, as a GPU's, which is certain
 * only at the second try. After either, deregister and unsubscribe. A microsecond for 64 KiB, and some
 * 10 ns for each further page.
 */
int pinwheel_watch_registered(pinwheel_watch_range *range);

/*
 * Returns 1 if the memory still has the pages that were registered, else 0: then the registration must
 * not be used for another transfer, and the range will never be valid again.
 *
 * Some nanoseconds, no lock and no system call, unless a mapping has changed since the last call. About a
 * microsecond for 64 KiB each time where the kernel notifies of no change: under uffd and pfn, and for
 * memory of files, shared memory and SysV segments under all mechanisms but fentry.
 */
int pinwheel_watch_valid(pinwheel_watch_range *range);

/*
 * Stores the entries of up to max ranges that have changed, and returns how many. A range is returned
 * once and stays subscribed. A cache that calls this at times, as at each miss, can deregister what
 * nobody may ask for again. Some nanoseconds if no mapping has changed since the last call.
 */
int pinwheel_watch_drain(pinwheel_watch *watch, void **entries, int max);

/* Ends a subscription, after the memory was deregistered, and frees it. */
int pinwheel_watch_unsubscribe(pinwheel_watch_range *range);

/*
 * A memory monitor of libfabric (1.17 was tried): under it, libfabric's own registration cache is never
 * stale. Import it before the first domain is opened:
 *
 *     struct fid_mem_monitor *monitor;
 *
 *     pinwheel_watch_monitor_open(NULL, &monitor);
 *     fi_import(FI_VERSION(1, 17), "mr_cache", NULL, 0, 0, &monitor->fid, NULL);    <rdma/fi_ext.h>
 *
 * It opens a watch with libfabric's first cache and closes it with the last. Where nothing can be
 * watched, libfabric goes on without a cache. A process can import one monitor at a time.
 */
struct fid_mem_monitor;

/* Makes a monitor. options are those of its watch. *monitor is freed by pinwheel_watch_monitor_close. */
int pinwheel_watch_monitor_open(const pinwheel_watch_options *options, struct fid_mem_monitor **monitor);

/*
 * Takes the monitor out of libfabric, which must be loaded still, and frees it. Close all domains before. It waits
 * until no thread of it is in libfabric. Returns -EBUSY if a domain has a cache still.
 */
int pinwheel_watch_monitor_close(struct fid_mem_monitor *monitor);

#ifdef __cplusplus
}
#endif

#endif
