/* Every function of pinwheel_watch.h but those of the monitor, under one mechanism: behaviour MECHANISM. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"
#include "pinwheel_watch.h"

enum { BYTES = 16 * 4096, TRIES = 1000, ROUNDS = 200 };

static pinwheel_watch *watch;

/* What a cache has of memory: it is pinned as long as the entry is there. */
struct entry {
	struct pin pin;
	pinwheel_watch_range *range;
};

/* Under uffd any page fault of the process may end a range; see the caveats of package vmwatch. */
static struct entry *cached(char *at, size_t bytes)
{
	struct entry *e = calloc(1, sizeof *e);

	for (int try = 0; e && try < TRIES; try++) {
		int error;

		MUST(!pinwheel_watch_subscribe(watch, at, bytes, e, &e->range));
		MUST(!pin(&e->pin, at, bytes));
		IS(0, pinwheel_watch_valid(e->range)); /* nobody has said yet that it is registered */
		error = pinwheel_watch_registered(e->range);
		if (!error && pinwheel_watch_valid(e->range))
			return e;
		MUST(!error || error == -EAGAIN);
		unpin(&e->pin);
		IS(0, pinwheel_watch_unsubscribe(e->range));
	}
	MUST(!"a range is never valid");
	return NULL;
}

static void evict(struct entry *e)
{
	unpin(&e->pin);
	IS(0, pinwheel_watch_unsubscribe(e->range));
	free(e);
}

static int drained(void *entry)
{
	void *entries[8];
	int n, found = 0;

	do {
		n = pinwheel_watch_drain(watch, entries, 8);
		for (int i = 0; i < n; i++)
			found += entries[i] == entry;
	} while (n == 8);
	MUST(n >= 0);
	return found;
}

static void refuses_nonsense(void)
{
	pinwheel_watch_options small = {.size = 8}, unknown = {.size = sizeof unknown, .mechanism = "guess"};
	pinwheel_watch_range *range;
	pinwheel_watch *other;
	void *entry;
	char c, text[8];

	IS(-EINVAL, pinwheel_watch_open(NULL, NULL));
	IS(-EINVAL, pinwheel_watch_open(&small, &other));
	IS(-EINVAL, pinwheel_watch_open(&unknown, &other));
	IS(-EINVAL, pinwheel_watch_close(NULL));
	IS(-EINVAL, pinwheel_watch_subscribe(NULL, &c, 1, NULL, &range));
	IS(-EINVAL, pinwheel_watch_subscribe(watch, &c, 1, NULL, NULL));
	IS(-EINVAL, pinwheel_watch_subscribe(watch, &c, 0, NULL, &range));
	IS(-EINVAL, pinwheel_watch_subscribe(watch, &c, (size_t)-1, NULL, &range));
	IS(-EINVAL, pinwheel_watch_registered(NULL));
	IS(0, pinwheel_watch_valid(NULL));
	IS(-EINVAL, pinwheel_watch_drain(watch, &entry, -1));
	IS(-EINVAL, pinwheel_watch_drain(NULL, &entry, 1));
	IS(-EINVAL, pinwheel_watch_unsubscribe(NULL));
	IS(-EINVAL, pinwheel_watch_describe(watch, text, 0));
	IS(0, pinwheel_watch_describe(watch, text, sizeof text));
	IS(0, strcmp(text, "mapping"));
}

static void tells_what_changed(void)
{
	char *a = memory(BYTES);
	struct entry *whole = cached(a, BYTES), *part = cached(a + 100, 50);
	pinwheel_watch_range *range;

	map_anew(a, BYTES);
	IS(0, pinwheel_watch_valid(whole->range));
	IS(0, pinwheel_watch_valid(part->range));
	IS(0, pinwheel_watch_valid(whole->range)); /* for good */
	IS(1, drained(whole));
	IS(0, drained(whole)); /* once */
	evict(part);
	evict(whole);

	whole = cached(a, BYTES); /* as new */
	MUST(!madvise(a + BYTES - 4096, 4096, MADV_DONTNEED));
	a[BYTES - 1] = 1;
	IS(0, pinwheel_watch_valid(whole->range));
	evict(whole);
	IS(0, drained(whole)); /* nothing that is unsubscribed */

	MUST(!pinwheel_watch_subscribe(watch, a, BYTES, a, &range));
	map_anew(a, BYTES); /* while it is being registered */
	IS(-EAGAIN, pinwheel_watch_registered(range));
	IS(0, pinwheel_watch_valid(range));
	IS(0, pinwheel_watch_unsubscribe(range));
	unpin(&cached(a, BYTES)->pin); /* the end of the watch unsubscribes */
}

/* Of a file, whose pages go without a notification under most mechanisms. */
static void verifies_files(void)
{
	int fd = memfd_create("file", 0);
	pinwheel_watch_range *range;
	struct entry *e;
	char *at;

	MUST(fd >= 0 && !ftruncate(fd, BYTES));
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(at != MAP_FAILED);
	memset(at, 1, BYTES);
	if (pinwheel_watch_subscribe(watch, at, BYTES, at, &range) == -ENOTSUP)
		return; /* as a normal user */
	IS(0, pinwheel_watch_unsubscribe(range));
	e = cached(at, BYTES);
	MUST(!ftruncate(fd, 0) && !ftruncate(fd, BYTES));
	memset(at, 2, BYTES);
	IS(0, pinwheel_watch_valid(e->range));
	IS(1, drained(e));
	evict(e);
	munmap(at, BYTES);
	close(fd);
}

static char *shared;
static unsigned maps; /* odd: it is being mapped anew. atomic */

static void *maps_anew(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		__atomic_add_fetch(&maps, 1, __ATOMIC_SEQ_CST);
		map_anew(shared, BYTES);
		__atomic_add_fetch(&maps, 1, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	return arg;
}

static unsigned count(void) { return __atomic_load_n(&maps, __ATOMIC_SEQ_CST); }

/*
 * A range that is valid now has not been mapped anew since it was registered. Of memory that is mapped anew twice in the
 * middle of that, nobody can tell where frames are compared: those from before the first time may come back.
 */
static void use(void)
{
	unsigned began = count(), before, now;
	pinwheel_watch_range *range;
	struct pin p;

	if (pinwheel_watch_subscribe(watch, shared, BYTES, NULL, &range))
		return;
	if (!pin(&p, shared, BYTES)) {
		int valid = !pinwheel_watch_registered(range), twice;

		before = count();
		twice = (before + 1) / 2 - began / 2 > 1;
		for (now = before; valid && !twice && now < 2 * ROUNDS; valid = pinwheel_watch_valid(range)) {
			/* The change that was under way, if any, and another one that is over by now. */
			if (now / 2 > (before + 1) / 2) {
				printf("it was valid at %u, though registered at %u to %u\n", now, began, before);
				__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
			}
			now = count();
		}
		unpin(&p);
	}
	IS(0, pinwheel_watch_unsubscribe(range));
}

static void *uses(void *arg)
{
	while (count() < 2 * ROUNDS)
		use();
	return arg;
}

static void serves_threads(void)
{
	pthread_t threads[3];

	shared = memory(BYTES);
	for (int i = 0; i < 3; i++)
		MUST(!pthread_create(&threads[i], NULL, i ? uses : maps_anew, NULL));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void knows_children(void)
{
	char *at = memory(BYTES);
	struct entry *e = cached(at, BYTES);
	pinwheel_watch_range *other;
	pinwheel_watch *another;
	int status;
	pid_t child = fork();

	MUST(child >= 0);
	if (!child) {
		void *entry;

		IS(0, pinwheel_watch_valid(e->range));
		IS(-ECHILD, pinwheel_watch_subscribe(watch, at, BYTES, at, &other));
		IS(-ECHILD, pinwheel_watch_registered(e->range));
		IS(-ECHILD, pinwheel_watch_drain(watch, &entry, 1));
		IS(-ECHILD, pinwheel_watch_unsubscribe(e->range));
		IS(-ECHILD, pinwheel_watch_close(watch));
		IS(-ECHILD, pinwheel_watch_open(NULL, &another));
		fflush(stdout);
		_exit(failures > 0);
	}
	MUST(waitpid(child, &status, 0) == child);
	IS(0, status);
	evict(e);
}

int main(int argc, char **argv)
{
	pinwheel_watch_options options = {.size = sizeof options, .mechanism = argc > 1 ? argv[1] : NULL, .service = "off"};
	pinwheel_watch_options none = {.size = sizeof none, .mechanism = "none"};
	pinwheel_watch_range *range;
	char text[4096];
	int error = pinwheel_watch_open(&options, &watch);

	if (error == -ENOTSUP) {
		printf("not here\n");
		return 0;
	}
	MUST(!error);
	IS(0, pinwheel_watch_describe(watch, text, sizeof text));
	if (strstr(text, "mapping changes: none")) {
		printf("not here\n");
		return 0;
	}
	refuses_nonsense();
	tells_what_changed();
	verifies_files();
	serves_threads();
	knows_children();
	IS(0, pinwheel_watch_close(watch));
	MUST(!pinwheel_watch_open(&none, &watch));
	IS(-ENOTSUP, pinwheel_watch_subscribe(watch, text, sizeof text, NULL, &range));
	IS(0, pinwheel_watch_close(watch));
	return finish();
}
