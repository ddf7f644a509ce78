/* Tables of the handles that the MPI library has accepted. Readers take no lock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "mpi_handles.h"

/*
 * Open hash tables of entries that begin with their handle. The entry of a freed handle
 * stays part of the chains through it. A handle for which no entry is free within PROBES
 * of its hash is not known.
 */
#define PROBES 64u
#define NONE ((pw_word)0)
#define FREED ((pw_word)1)

struct pw_datatype pw_datatypes[PW_KNOWN_HANDLES];
struct pw_comm_info pw_comm_info[PW_KNOWN_HANDLES];
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* a leaf, held for a few loads */

struct table {
	char *entries;
	size_t bytes; /* of one */
};
static const struct table types = {(char *)pw_datatypes, sizeof *pw_datatypes};
static const struct table comms = {(char *)pw_comm_info, sizeof *pw_comm_info};

static pw_word *entry(const struct table *t, pw_word handle, unsigned i)
{
	return (pw_word *)(t->entries + (pw_known_hash(handle) + i) % PW_KNOWN_HANDLES * t->bytes);
}

static void *find(const struct table *t, pw_word handle)
{
	for (unsigned i = 0; i < PROBES && handle > FREED; i++) {
		pw_word *at = entry(t, handle, i), have = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (have == handle)
			return at;
		if (have == NONE)
			break;
	}
	return NULL;
}

static void forget(const struct table *t, pw_word handle)
{
	pw_word *at;

	pthread_mutex_lock(&writing);
	if ((at = find(t, handle)))
		__atomic_store_n(at, FREED, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&writing);
}

/* Stores an entry in place of an older one of its handle. */
static void *keep(const struct table *t, const void *made)
{
	pw_word handle = *(const pw_word *)made, *at = NULL;

	pthread_mutex_lock(&writing);
	at = find(t, handle);
	for (unsigned i = 0; i < PROBES && !at; i++)
		if (*entry(t, handle, i) <= FREED)
			at = entry(t, handle, i);
	if (at && (*at != handle || memcmp(at, made, t->bytes))) {
		__atomic_store_n(at, FREED, __ATOMIC_RELEASE);
		memcpy(at + 1, (const pw_word *)made + 1, t->bytes - sizeof *at);
		__atomic_store_n(at, handle, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&writing);
	return at;
}

/* The handle of a basic datatype in MPICH encodes its size. */
static __attribute__((noinline)) const struct pw_datatype *basic(pw_word type)
{
	struct pw_datatype s = {.type = type, .bytes = pw_mpi_basic_bytes(type)};

	s.extent = (intptr_t)s.bytes;
	return s.bytes ? keep(&types, &s) : NULL;
}

const struct pw_datatype *pw_datatype_find(pw_word type)
{
	const struct pw_datatype *s = find(&types, type);

	return s ? s : basic(type);
}

const struct pw_comm_info *pw_comm_info_find(pw_word comm) { return find(&comms, comm); }
void pw_datatype_forget(pw_word type) { forget(&types, type); }
void pw_comm_info_forget(pw_word comm) { forget(&comms, comm); }

const struct pw_datatype *pw_datatype_learn(pw_word type)
{
	struct pw_datatype s;
	int bytes = 0;

	if (!type || type == pw_mpi.type_null)
		return NULL;
	memset(&s, 0, sizeof s);
	s.type = type;
	if (pw_mpi.type_size_x ? pw_mpi.type_size_x(type, &s.bytes) : pw_mpi.type_size(type, &bytes))
		return NULL;
	if (!pw_mpi.type_size_x)
		s.bytes = bytes;
	if (s.bytes <= 0 || pw_mpi.type_extent(type, &s.low, &s.extent) || s.extent <= 0)
		s.bytes = 0;
	return keep(&types, &s);
}

const struct pw_comm_info *pw_comm_info_learn(pw_word comm)
{
	struct pw_comm_info m;

	if (!comm || comm == pw_mpi.comm_null)
		return NULL;
	memset(&m, 0, sizeof m);
	m.comm = comm;
	if (pw_mpi.comm_rank(comm, &m.rank) || pw_mpi.comm_size(comm, &m.size))
		return NULL;
	m.is_inter = pw_is_inter(comm);
	if (m.is_inter && pw_mpi.comm_remote_size(comm, &m.remote_size))
		m.remote_size = 0;
	if (!m.is_inter)
		pw_neighbor_counts(comm, m.rank, &m.sources, &m.destinations);
	return keep(&comms, &m);
}

void pw_mpi_handles_init(void)
{
	if (!pw_mpi.by_session) {
		pw_comm_info_learn(pw_mpi.comm_world);
		pw_comm_info_learn(pw_mpi.comm_self);
	}
	pw_mpi_each_type(pw_datatype_learn);
}
