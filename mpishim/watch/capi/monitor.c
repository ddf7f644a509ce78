/*
 * The memory monitor of libfabric, over the functions of pinwheel_watch.h.
 *
 * libfabric asks at each hit whether the range of the entry is valid. It registers before it subscribes, so a change of
 * the memory between the two, in the middle of the call that takes it as a buffer, goes unseen, as with its own
 * monitors.
 *
 * It names a range by address and length, and several caches (of several domains) may have an entry of the same name.
 * One may be from before a change and another from after it, and nothing in the question tells which is asked for. So
 * what has changed is not valid, and can't be subscribed to, until libfabric has been told to drop it from all caches:
 * what has that name afterwards is new. To tell it takes a lock that libfabric holds when it calls us, so a thread of
 * ours does that.
 *
 * libfabric 1.17 never unsubscribes. What its caches have evicted stays here until it changes, or until there are
 * MOST ranges: then all are dropped from all caches.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "_cgo_export.h"
#include "fabric.h"
#include "objects.h"

#define PUBLIC __attribute__((visibility("default")))
#define BUCKETS 4096u
#define MOST 16384u

/* One name that is subscribed to. */
struct record {
	const void *address;
	size_t bytes;
	pinwheel_watch_range *range;
	unsigned subscribers;
	int is_changed;
	struct record *next;         /* in its bucket */
	struct record *next_changed; /* in the order of what is to be told */
};

/* From start to stop. Its thread frees it. */
struct session {
	struct monitor *monitor;
	pinwheel_watch *watch;
	int is_stopped;
	unsigned records;
	struct record *bucket[BUCKETS];
	struct record *changed, **last_changed;
};

struct monitor {
	struct fid_mem_monitor fabric; /* first */
	struct fabric_monitor_ops ops;
	pinwheel_watch_options options;
	char *mechanism, *service;

	pthread_mutex_t lock; /* of all that follows; no lock of libfabric is taken inside it */
	pthread_cond_t news;
	struct session *session; /* NULL: stopped */
	unsigned sessions;       /* whose threads have not ended */
};

static struct record **place_of(struct session *s, const void *address, size_t bytes)
{
	uint64_t hash = ((uintptr_t)address ^ (uint64_t)bytes << 32) * 0x9e3779b97f4a7c15u;
	struct record **at = &s->bucket[hash >> 52]; /* log2 of BUCKETS bits */

	while (*at && ((*at)->address != address || (*at)->bytes != bytes))
		at = &(*at)->next;
	return at;
}

static void drop(struct session *s, struct record **at)
{
	struct record *r = *at;

	*at = r->next;
	s->records--;
	pinwheel_watch_unsubscribe(r->range);
	free(r);
}

/* Has libfabric told of a record. */
static void change(struct monitor *m, struct record *r)
{
	struct session *s = m->session;

	if (r->is_changed)
		return;
	r->is_changed = 1;
	*s->last_changed = r;
	s->last_changed = &r->next_changed;
	pthread_cond_broadcast(&m->news);
}

static void look_for_changes(struct monitor *m)
{
	void *entries[64];
	int n;

	do {
		n = pinwheel_watch_drain(m->session->watch, entries, 64);
		for (int i = 0; i < n; i++)
			change(m, entries[i]);
	} while (n == 64);
}

static int add(struct monitor *m, struct record **at, const void *address, size_t bytes)
{
	struct session *s = m->session;
	struct record *r;
	int error;

	if (s->records >= MOST) {
		for (unsigned b = 0; b < BUCKETS; b++)
			for (r = s->bucket[b]; r; r = r->next)
				change(m, r);
		return -EAGAIN;
	}
	if (!(r = calloc(1, sizeof *r)))
		return -ENOMEM;
	r->address = address;
	r->bytes = bytes;
	r->subscribers = 1;
	if ((error = pinwheel_watch_subscribe(s->watch, address, bytes, r, &r->range))) {
		free(r);
		return error;
	}
	*at = r;
	s->records++;
	if ((error = pinwheel_watch_registered(r->range)))
		drop(s, at);
	return error;
}

static int on_subscribe(struct fid_mem_monitor *fabric, const void *address, size_t bytes)
{
	struct monitor *m = (struct monitor *)fabric;
	struct record **at;
	int status = -EINVAL;

	pthread_mutex_lock(&m->lock);
	if (m->session) {
		look_for_changes(m);
		at = place_of(m->session, address, bytes);
		if (!*at) {
			status = add(m, at, address, bytes);
		} else if ((*at)->is_changed || !pinwheel_watch_valid((*at)->range)) {
			look_for_changes(m);
			status = -EAGAIN;
		} else {
			(*at)->subscribers++;
			status = 0;
		}
	}
	pthread_mutex_unlock(&m->lock);
	return status;
}

static void on_unsubscribe(struct fid_mem_monitor *fabric, const void *address, size_t bytes)
{
	struct monitor *m = (struct monitor *)fabric;
	struct record **at;

	pthread_mutex_lock(&m->lock);
	at = m->session ? place_of(m->session, address, bytes) : NULL;
	if (at && *at && !(*at)->is_changed && !--(*at)->subscribers)
		drop(m->session, at);
	pthread_mutex_unlock(&m->lock);
}

static bool on_valid(struct fid_mem_monitor *fabric, const void *address, size_t bytes)
{
	struct monitor *m = (struct monitor *)fabric;
	struct record *r;
	bool valid = false;

	pthread_mutex_lock(&m->lock);
	r = m->session ? *place_of(m->session, address, bytes) : NULL;
	if (r && !r->is_changed && !(valid = pinwheel_watch_valid(r->range)))
		look_for_changes(m);
	pthread_mutex_unlock(&m->lock);
	return valid;
}

/* The thread of a session: tells libfabric what has changed. */
void watch_tell(void *session)
{
	struct session *s = session;
	struct monitor *m = s->monitor;

	pthread_mutex_lock(&m->lock);
	while (!s->is_stopped) {
		struct record *r = s->changed;

		if (!r) {
			pthread_cond_wait(&m->news, &m->lock);
			continue;
		}
		pthread_mutex_unlock(&m->lock);
		m->fabric.import_ops->notify(&m->fabric, r->address, r->bytes);
		pthread_mutex_lock(&m->lock);
		if (!(s->changed = r->next_changed))
			s->last_changed = &s->changed;
		drop(s, place_of(s, r->address, r->bytes));
	}
	for (unsigned b = 0; b < BUCKETS; b++)
		while (s->bucket[b])
			drop(s, &s->bucket[b]);
	pthread_mutex_unlock(&m->lock);
	pinwheel_watch_close(s->watch);
	free(s);
	pthread_mutex_lock(&m->lock);
	m->sessions--;
	pthread_cond_broadcast(&m->news);
	pthread_mutex_unlock(&m->lock);
}

static int on_start(struct fid_mem_monitor *fabric)
{
	struct monitor *m = (struct monitor *)fabric;
	struct session *s = calloc(1, sizeof *s);
	int error;

	if (!s)
		return -ENOMEM;
	s->monitor = m;
	s->last_changed = &s->changed;
	error = pinwheel_watch_open(&m->options, &s->watch);
	if (error)
		IN_GO(watchWarn("libfabric goes on without a registration cache: its monitor can't watch as it was told to"));
	if (!error && s->watch->is_blind) { /* which it said if nobody has asked for that */
		pinwheel_watch_close(s->watch);
		error = -ENOTSUP;
	}
	if (error) {
		free(s);
		return error;
	}
	pthread_mutex_lock(&m->lock);
	m->session = s;
	m->sessions++;
	pthread_mutex_unlock(&m->lock);
	IN_GO(watchRun(s));
	return 0;
}

/* libfabric holds a lock that its notify takes, so nobody may wait for the thread here. */
static void on_stop(struct fid_mem_monitor *fabric)
{
	struct monitor *m = (struct monitor *)fabric;

	pthread_mutex_lock(&m->lock);
	if (m->session)
		m->session->is_stopped = 1;
	m->session = NULL;
	pthread_cond_broadcast(&m->news);
	pthread_mutex_unlock(&m->lock);
}

static void free_monitor(struct monitor *m)
{
	pthread_cond_destroy(&m->news);
	pthread_mutex_destroy(&m->lock);
	free(m->mechanism);
	free(m->service);
	free(m);
}

PUBLIC int pinwheel_watch_monitor_open(const pinwheel_watch_options *options, struct fid_mem_monitor **monitor)
{
	struct monitor *m;

	if (!monitor || (options && options->size < sizeof m->options))
		return -EINVAL;
	if (!(m = calloc(1, sizeof *m)))
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->news, NULL);
	if ((options && options->mechanism && !(m->mechanism = strdup(options->mechanism))) ||
	    (options && options->service && !(m->service = strdup(options->service)))) {
		free_monitor(m);
		return -ENOMEM;
	}
	m->options = (pinwheel_watch_options){sizeof m->options, m->mechanism, m->service};
	m->ops = (struct fabric_monitor_ops){sizeof m->ops, on_start, on_stop, on_subscribe, on_unsubscribe, on_valid};
	m->fabric.fid.fclass = FABRIC_CLASS_MEM_MONITOR;
	m->fabric.export_ops = &m->ops;
	*monitor = &m->fabric;
	return 0;
}

PUBLIC int pinwheel_watch_monitor_close(struct fid_mem_monitor *monitor)
{
	struct monitor *m = (struct monitor *)monitor;
	int is_started;

	if (!m)
		return -EINVAL;
	pthread_mutex_lock(&m->lock);
	if (!(is_started = m->session != NULL))
		while (m->sessions)
			pthread_cond_wait(&m->news, &m->lock);
	pthread_mutex_unlock(&m->lock);
	if (is_started)
		return -EBUSY;
	if (m->fabric.fid.ops) /* it was imported */
		m->fabric.fid.ops->close(&m->fabric.fid);
	free_monitor(m);
	return 0;
}
