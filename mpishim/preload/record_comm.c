/*
 * Recording: communicators and windows.
 *
 * A handle means nothing to another process, and ranks use communicators in different
 * orders. So each communicator has a global ID that every member computes without a
 * message. It is a hash of the way in which the communicator was created, its parent's ID, its members
 * and the number of such communicators before it. All members create the children of a
 * parent in the same order, except by a group or by a nonblocking call; those are counted
 * apart.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "record_comm.h"
#include "record_ring.h"

/* Protects the buckets: any thread creates and frees handles. The recorded thread uses what it finds. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define BUCKETS 4096u
static struct pw_comm *buckets[BUCKETS];

/* How many communicators hash alike so far: an open hash table that grows. */
static struct made {
	uint64_t kind;
	uint64_t times;
} *made;
static uint64_t made_places, made_used;

/* Limits of the trace format; see trace.maxComms and trace.maxCommTotal. */
#define MAX_COMMS (1 << 16)
#define MAX_MEMBERS (1 << 22)
static int32_t next_id;
static int64_t all_members;

static uint64_t mix(uint64_t h, uint64_t n)
{
	h = (h ^ n) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static struct made *made_at(struct made *table, uint64_t places, uint64_t kind)
{
	uint64_t i = mix(kind, 0) & (places - 1);

	while (table[i].times && table[i].kind != kind)
		i = (i + 1) & (places - 1);
	return &table[i];
}

/* Counts one more of a kind, from 1. */
static uint64_t count(uint64_t kind)
{
	struct made *m;

	if (2 * made_used >= made_places) {
		uint64_t places = made_places ? 2 * made_places : 64;
		struct made *larger = calloc(places, sizeof *larger);

		if (!larger)
			return 0;
		for (uint64_t i = 0; i < made_places; i++)
			if (made[i].times)
				*made_at(larger, places, made[i].kind) = made[i];
		free(made);
		made = larger;
		made_places = places;
	}
	m = made_at(made, made_places, kind);
	made_used += !m->times;
	m->kind = kind;
	return ++m->times;
}

/* The world ranks of a group, which it frees; NULL if they cannot be found. */
static int32_t *ranks_of(pw_word group, int *n)
{
	pw_word world = 0;
	int *ranks = NULL, is_known = 0;
	int32_t *others = NULL;

	if (!pw_mpi.group_size(group, n) && !pw_mpi_world_group(&world)) {
		ranks = malloc((size_t)(*n + 1) * sizeof *ranks);
		others = malloc((size_t)(*n + 1) * sizeof *others);
		for (int i = 0; ranks && i < *n; i++)
			ranks[i] = i;
		is_known = ranks && others && !pw_mpi.group_translate(group, *n, ranks, world, others);
		for (int i = 0; is_known && i < *n; i++)
			if (others[i] < 0 || others[i] >= pw.size)
				others[i] = PW_ELSEWHERE;
		pw_mpi.group_free(&world);
	}
	pw_mpi.group_free(&group);
	free(ranks);
	if (is_known)
		return others;
	free(others);
	return NULL;
}

/* The smaller group goes first: both sides of an intercommunicator come to the same order. */
static int goes_first(const int32_t *a, int n, const int32_t *b, int m)
{
	for (int i = 0; i < n && i < m; i++)
		if (a[i] != b[i])
			return a[i] < b[i];
	return n < m;
}

static int find_members(struct pw_comm *c, int is_window)
{
	pw_word group = 0, remote = 0;
	int32_t *local, *first;
	int n = 0, locals_first;

	if (is_window ? !pw_mpi.win_group || pw_mpi.win_group(c->handle, &group)
		      : pw_mpi.comm_group(c->handle, &group))
		return 0;
	if (!(local = ranks_of(group, &n)))
		return 0;
	c->is_inter = !is_window && pw_is_inter(c->handle);
	if (!c->is_inter) {
		c->world = c->peer = local;
		c->members = c->peers = n;
		return 1;
	}
	if (!pw_mpi.comm_remote_group || pw_mpi.comm_remote_group(c->handle, &remote) ||
			!(c->peer = ranks_of(remote, &c->peers)) ||
	    !(c->world = malloc((size_t)(n + c->peers + 1) * sizeof *c->world))) {
		free(local);
		return 0;
	}
	c->members = n + c->peers;
	locals_first = goes_first(local, n, c->peer, c->peers);
	first = c->world + (locals_first ? 0 : c->peers);
	memcpy(first, local, (size_t)n * sizeof *local);
	memcpy(c->world + (locals_first ? n : 0), c->peer, (size_t)c->peers * sizeof *local);
	free(local);
	return 1;
}

static struct pw_comm **bucket_of(pw_word handle) { return &buckets[mix(handle, 1) % BUCKETS]; }

static struct pw_comm *find(pw_word handle)
{
	struct pw_comm *c = *bucket_of(handle);

	while (c && c->handle != handle)
		c = c->next;
	return c;
}

/* The caller holds the lock. NULL if the members cannot be found. */
static struct pw_comm *make(pw_word handle, uint64_t parent, unsigned how)
{
	struct pw_comm *c = calloc(1, sizeof *c);
	uint64_t kind = mix(mix(1, how), parent);

	if (!c)
		return NULL;
	c->handle = handle;
	c->id = -1;
	c->references = 1;
	if (!find_members(c, how == PW_WINDOW)) {
		pw_comm_drop(c);
		return NULL;
	}
	for (int i = 0; i < c->members; i++)
		kind = mix(kind, (uint64_t)(int64_t)c->world[i]);
	c->global_id = handle == pw_mpi.comm_world ? 1 : mix(kind, count(kind)) | 2; /* never 0 */
	c->next = *bucket_of(handle);
	*bucket_of(handle) = c;
	return c;
}

static void forget(pw_word handle)
{
	struct pw_comm **at = bucket_of(handle), *c;

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	if (!(c = *at))
		return;
	*at = c->next;
	pw_comm_drop(c);
}

struct pw_comm *pw_comm_keep(struct pw_comm *c)
{
	if (c)
		__atomic_add_fetch(&c->references, 1, __ATOMIC_RELAXED);
	return c;
}

void pw_comm_drop(struct pw_comm *c)
{
	if (!c || __atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL))
		return;
	if (c->peer != c->world)
		free(c->peer);
	free(c->world);
	free(c);
}

struct pw_comm *pw_comm_find(pw_word handle, int is_window)
{
	struct pw_comm *c;

	pthread_mutex_lock(&lock);
	if (!(c = find(handle)))
		c = make(handle, 0, is_window ? PW_WINDOW : PW_UNSEEN);
	pw_comm_keep(c);
	pthread_mutex_unlock(&lock);
	return c;
}

uint64_t pw_comm_global_id(pw_word handle)
{
	struct pw_comm *c = pw_comm_find(handle, 0);
	uint64_t name = c ? c->global_id : 0;

	pw_comm_drop(c);
	return name;
}

void pw_comm_created(pw_word handle, uint64_t parent, unsigned how)
{
	if (!handle || handle == pw_mpi.comm_null)
		return;
	pthread_mutex_lock(&lock);
	/* MPI_Comm_get_parent returns the same handle each time. Any other known handle was freed unseen. */
	if (parent || !find(handle)) {
		forget(handle);
		make(handle, parent, how);
	}
	pthread_mutex_unlock(&lock);
}

void pw_comm_forget(pw_word handle)
{
	pthread_mutex_lock(&lock);
	if (handle != pw_mpi.comm_world)
		forget(handle);
	pthread_mutex_unlock(&lock);
}

int32_t pw_comm_id(struct pw_comm *c)
{
	struct pw_record *r;
	int32_t *copy;

	if (!c || c->id >= 0)
		return c ? c->id : -1;
	if (next_id >= MAX_COMMS || all_members + c->members > MAX_MEMBERS)
		return -1;
	copy = malloc((size_t)(c->members + 1) * sizeof *copy); /* the reader frees it */
	if (!copy || !(r = pw_record_next())) {
		free(copy);
		return -1;
	}
	memcpy(copy, c->world, (size_t)c->members * sizeof *copy);
	memset(r, 0, sizeof *r);
	r->op = PW_COMM;
	r->comm = c->id = next_id++;
	r->start_ns = c->global_id;
	r->addr = (uint64_t)copy;
	r->bytes = (uint64_t)c->members;
	pw_record_push();
	all_members += c->members;
	return c->id;
}

int32_t pw_world_rank(const struct pw_comm *c, int64_t peer)
{
	if (peer >= 0)
		return c && peer < c->peers ? c->peer[peer] : PW_NO_PEER;
	if (c && c->is_inter && peer == pw_mpi.root)
		return pw.rank;
	return peer == pw_mpi.any_source ? PW_ANY_SOURCE : PW_NO_PEER;
}
