/*
 * The functions of pinwheel_watch.h: what needs no look into the watch is answered here, and the rest in Go. A forked
 * child has no Go runtime.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "_cgo_export.h"
#include "objects.h"

#define PUBLIC __attribute__((visibility("default")))

enum { OPTIONS_0 = 24 }; /* their size in version 0 of the header; later ones may have more fields behind */

static int is_child;

static void in_child(void) { is_child = 1; }

__attribute__((constructor)) static void hear_of_forks(void)
{
	pthread_atfork(NULL, NULL, in_child); /* fails without memory only; a forked child is then on its own */
}

PUBLIC int pinwheel_watch_open(const pinwheel_watch_options *options, pinwheel_watch **watch)
{
	if (!watch || (options && options->size < OPTIONS_0))
		return -EINVAL;
	if (is_child)
		return -ECHILD;
	return IN_GO(watchOpen(options ? (char *)options->mechanism : NULL, options ? (char *)options->service : NULL, watch));
}

PUBLIC int pinwheel_watch_close(pinwheel_watch *watch)
{
	return !watch ? -EINVAL : is_child ? -ECHILD : IN_GO(watchClose(watch));
}

PUBLIC int pinwheel_watch_describe(pinwheel_watch *watch, char *text, size_t size)
{
	return !watch || !text || !size ? -EINVAL : is_child ? -ECHILD : IN_GO(watchDescribe(watch, text, size));
}

PUBLIC int pinwheel_watch_subscribe(pinwheel_watch *watch, const void *address, size_t bytes, void *entry,
				    pinwheel_watch_range **range)
{
	if (!watch || !range)
		return -EINVAL;
	return is_child ? -ECHILD : IN_GO(watchSubscribe(watch, (uintptr_t)address, bytes, entry, range));
}

PUBLIC int pinwheel_watch_registered(pinwheel_watch_range *range)
{
	return !range ? -EINVAL : is_child ? -ECHILD : IN_GO(watchRegistered(range));
}

PUBLIC int pinwheel_watch_unsubscribe(pinwheel_watch_range *range)
{
	return !range ? -EINVAL : is_child ? -ECHILD : IN_GO(watchUnsubscribe(range));
}

/* Whether nothing has changed since the states of the ranges were looked after. Then look at them, not before. */
static int is_current(const pinwheel_watch *w)
{
	uint64_t now = __atomic_load_n(w->word, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&w->seen, __ATOMIC_ACQUIRE) == now;
}

PUBLIC int pinwheel_watch_valid(pinwheel_watch_range *range)
{
	if (!range || is_child)
		return 0;
	if (is_current(range->watch)) {
		uint32_t state = __atomic_load_n(&range->state, __ATOMIC_ACQUIRE);

		if (state != WATCH_VERIFIED)
			return state == WATCH_NOTIFIED;
	}
	return IN_GO(watchValid(range));
}

PUBLIC int pinwheel_watch_drain(pinwheel_watch *watch, void **entries, int max)
{
	if (!watch || !entries || max < 0)
		return -EINVAL;
	if (is_child)
		return -ECHILD;
	if (is_current(watch) && !__atomic_load_n(&watch->waiting, __ATOMIC_ACQUIRE))
		return 0;
	return IN_GO(watchDrain(watch, entries, max));
}
