/*
 * The monitor of pinwheel_watch.h under one mechanism, and this program in the place of libfabric: monitor MECHANISM.
 * make test-stale-libfabric has a real one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "check.h"
#include "fabric.h"
#include "pinwheel_watch.h"

enum { BYTES = 16 * 4096, TRIES = 1000, MOST = 16384 };

static struct fid_mem_monitor *monitor;

/* libfabric's: held when it calls the monitor, and taken by notify. */
static pthread_mutex_t caches = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static const void *last;
static unsigned times;

static void notify(struct fid_mem_monitor *m, const void *address, size_t bytes)
{
	IS(1, m == monitor && bytes > 0);
	pthread_mutex_lock(&caches);
	last = address;
	times++;
	pthread_cond_broadcast(&told);
	pthread_mutex_unlock(&caches);
}

/* With the lock held. A test has a deadline. */
static void wait_until_told(const void *address)
{
	while (last != address)
		pthread_cond_wait(&told, &caches);
	last = NULL;
}

static int closes;

static int on_close(struct fabric_fid *fid)
{
	IS(1, fid == &monitor->fid);
	closes++;
	return 0;
}

/* What was told is forgotten in a moment: by the thread that has told, which then takes the monitor's own lock. */
static int subscribe(const void *address, size_t bytes)
{
	int error;

	while ((error = monitor->export_ops->subscribe(monitor, address, bytes)) == -EAGAIN) {
		pthread_mutex_unlock(&caches);
		sched_yield();
		pthread_mutex_lock(&caches);
	}
	return error;
}

static bool valid(const void *address, size_t bytes) { return monitor->export_ops->valid(monitor, address, bytes); }

/* Under uffd any page fault of the process may end a range; see the caveats of package vmwatch. */
static void settle(const void *address, size_t bytes)
{
	for (int try = 0; try < TRIES; try++) {
		IS(0, subscribe(address, bytes));
		if (valid(address, bytes))
			return;
	}
	MUST(!"a range is never valid");
}

static void tells_all_caches(int only_if_asked)
{
	char *a = memory(BYTES), *b = memory(BYTES), *c = memory(BYTES);
	struct pin of_a, of_b;

	MUST(!pin(&of_a, a, BYTES) && !pin(&of_b, b, BYTES));
	IS(0, valid(a, BYTES)); /* nobody has subscribed */
	settle(a, BYTES);       /* one cache */
	subscribe(a, BYTES);    /* and another */
	settle(b, BYTES);
	last = NULL;
	map_anew(a, BYTES);
	IS(0, valid(a, BYTES));
	/* The other cache may have an entry from before the change: until that is told, nothing may get this name. */
	IS(-EAGAIN, monitor->export_ops->subscribe(monitor, a, BYTES));
	IS(0, valid(a, BYTES));
	wait_until_told(a);
	settle(a, BYTES);

	last = NULL;
	map_anew(b, BYTES);
	if (only_if_asked)
		IS(0, valid(b, BYTES));
	subscribe(c, BYTES); /* a miss looks for what changed */
	wait_until_told(b);
	IS(0, valid(b, BYTES));
	unpin(&of_a);
	unpin(&of_b);
	MUST(!munmap(b, BYTES) && !munmap(a, BYTES) && !munmap(c, BYTES));
}

static void counts_subscribers(void)
{
	char *a = memory(BYTES);

	settle(a, BYTES);
	for (int k = 0; k < TRIES; k++) /* more than settle needs under uffd */
		monitor->export_ops->unsubscribe(monitor, a, BYTES);
	IS(0, valid(a, BYTES));
	MUST(!munmap(a, BYTES));
}

/* libfabric doesn't unsubscribe, so this can't grow without bound. */
static void drops_all_when_full(void)
{
	char *a = memory(BYTES);
	unsigned before = times;
	size_t n = 0;
	int error = 0;

	while (!error && n <= 2 * MOST)
		error = monitor->export_ops->subscribe(monitor, a, ++n);
	IS(-EAGAIN, error);
	IS(1, n <= MOST + 1);
	IS(0, valid(a, n - 1));
	while (times - before < n - 1)
		pthread_cond_wait(&told, &caches);
	IS(0, subscribe(a, n));
	MUST(!munmap(a, BYTES));
}

int main(int argc, char **argv)
{
	pinwheel_watch_options options = {.size = sizeof options, .mechanism = argc > 1 ? argv[1] : NULL, .service = "off"};
	pinwheel_watch_options none = {.size = sizeof none, .mechanism = "none"};
	struct fabric_notify_ops import = {sizeof import, notify};
	struct fabric_ops ops = {sizeof ops, on_close};
	int error;

	IS(-EINVAL, pinwheel_watch_monitor_open(NULL, NULL));
	IS(-EINVAL, pinwheel_watch_monitor_close(NULL));
	MUST(!pinwheel_watch_monitor_open(&none, &monitor));
	IS(-ENOTSUP, monitor->export_ops->start(monitor)); /* then libfabric has no cache */
	IS(0, pinwheel_watch_monitor_close(monitor));
	IS(0, closes);

	MUST(!pinwheel_watch_monitor_open(&options, &monitor));
	IS(FABRIC_CLASS_MEM_MONITOR, (long)monitor->fid.fclass);
	monitor->fid.ops = &ops;
	monitor->import_ops = &import;
	for (int round = 0; round < 3; round++) {
		if ((error = monitor->export_ops->start(monitor)) == -ENOTSUP) {
			printf("not here\n");
			return 0;
		}
		MUST(!error);
		pthread_mutex_lock(&caches);
		tells_all_caches(options.mechanism && !strcmp(options.mechanism, "pfn"));
		counts_subscribers();
		drops_all_when_full();
		pthread_mutex_unlock(&caches);
		IS(-EBUSY, pinwheel_watch_monitor_close(monitor));
		monitor->export_ops->stop(monitor);
		IS(0, valid(&ops, sizeof ops));
		IS(-EINVAL, monitor->export_ops->subscribe(monitor, &ops, sizeof ops));
	}
	IS(0, pinwheel_watch_monitor_close(monitor));
	IS(1, closes);
	return finish();
}
