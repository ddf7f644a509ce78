/*
 * The shared segment. It is a memfd, so that nothing is left of it when its last process has gone, however
 * it went. Every process binds an abstract Unix socket whose name tells where the memfd is; a newcomer
 * opens that through /proc. Another such name is the lock under which processes come.
 */
#include "sv.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define VERSION "softverbs2" /* raised whenever struct sv_shm changes */

struct sv_shm *sv;
uint32_t sv_me = UINT32_MAX; /* none, until sv_open */
int sv_debug;
int sv_engine;
static pid_t opened_by;
static int beacon = -1, segment = -1;

int sv_lock(struct sv_lock *l)
{
	if (pthread_mutex_lock(&l->mutex) != EOWNERDEAD)
		return 0;
	pthread_mutex_consistent(&l->mutex);
	return 1;
}

void sv_unlock(struct sv_lock *l) { pthread_mutex_unlock(&l->mutex); }

static void lock_init(struct sv_lock *l)
{
	pthread_mutexattr_t a;

	if (l->ready)
		return;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&l->mutex, &a);
	pthread_mutexattr_destroy(&a);
	__atomic_store_n(&l->ready, 1, __ATOMIC_RELEASE);
}

int sv_alive(uint32_t p)
{
	int r = pthread_mutex_trylock(&sv->proc[p].alive.mutex);

	if (r == EBUSY)
		return 1;
	if (r == EOWNERDEAD)
		pthread_mutex_consistent(&sv->proc[p].alive.mutex);
	if (r == 0 || r == EOWNERDEAD)
		sv_unlock(&sv->proc[p].alive);
	return 0;
}

static unsigned order(uint64_t bytes)
{
	unsigned o = 12;

	while ((1ull << o) < bytes)
		o++;
	return o;
}

/* Each takes effect by one store: a process killed here loses at most the block in its hands. */
uint64_t sv_alloc(uint64_t bytes)
{
	unsigned o = order(bytes);
	uint64_t off;

	sv_lock(&sv->alloc);
	if ((off = sv->free[o])) {
		sv->free[o] = *(uint64_t *)sv_at(off);
	} else if (sv->brk + (1ull << o) <= SV_BYTES) {
		off = sv->brk;
		sv->brk += 1ull << o;
	}
	sv_unlock(&sv->alloc);
	return off;
}

void sv_free(uint64_t off, uint64_t bytes)
{
	unsigned o = order(bytes);

	sv_lock(&sv->alloc);
	*(uint64_t *)sv_at(off) = sv->free[o];
	sv->free[o] = off;
	sv_unlock(&sv->alloc);
}

/* Frees what a dead process has left. Its peers look at "live" under each object's lock. */
static void bury(uint32_t p)
{
	for (uint32_t i = 0; i < SV_KEYS; i++)
		if (sv->key[i].key && sv->key[i].proc == p)
			__atomic_store_n(&sv->key[i].key, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < SV_QPS; i++)
		if (sv->qp[i].live && sv->qp[i].proc == p) {
			sv_lock(&sv->qp[i].lock);
			sv->qp[i].live = 0;
			sv_unlock(&sv->qp[i].lock);
		}
	for (uint32_t i = 0; i < SV_RQS; i++)
		if (sv->rq[i].live && sv->rq[i].proc == p)
			sv_rq_end(i);
	for (uint32_t i = 0; i < SV_CQS; i++)
		if (sv->cq[i].live && sv->cq[i].proc == p) {
			sv_cq_lock(&sv->cq[i]);
			sv->cq[i].live = 0;
			sv_free(sv->cq[i].ring, sv->cq[i].cap * sizeof(struct sv_cqe));
			sv_unlock(&sv->cq[i].lock);
		}
	__atomic_store_n(&sv->proc[p].live, 0, __ATOMIC_RELEASE);
}

static socklen_t name_of(struct sockaddr_un *a, const char *rest)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, VERSION ".%u.%s", geteuid(), rest));
}

/* A socket with this name, -1 if there is one already. */
static int bind_name(const char *rest)
{
	struct sockaddr_un a;
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s >= 0 && bind(s, (struct sockaddr *)&a, name_of(&a, rest))) {
		close(s);
		s = -1;
	}
	return s;
}

static int door(void) /* closed again by close(), or by death */
{
	for (int ms = 0; ms < 20000; ms++) {
		int s = bind_name("door");

		if (s >= 0 || errno != EADDRINUSE)
			return s;
		usleep(1000);
	}
	sv_say("abstract socket " VERSION ".%u.door is taken by somebody who keeps it", geteuid());
	errno = ETIMEDOUT;
	return -1;
}

void sv_bury_dead(void)
{
	int d = door(); /* one burial at a time */

	for (uint32_t i = 0; d >= 0 && i < SV_PROCS; i++)
		if (sv->proc[i].live && i != sv_me && !sv_alive(i))
			bury(i);
	if (d >= 0)
		close(d);
}

/* The segment of the processes that are there, or -1. */
static int find_segment(void)
{
	char prefix[64], line[512];
	FILE *f = fopen("/proc/net/unix", "re");
	struct stat st;
	int fd = -1;

	snprintf(prefix, sizeof(prefix), "@" VERSION ".%u.at.", geteuid());
	while (fd < 0 && f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, prefix), path[64];
		int pid, num;

		if (!at || sscanf(at + strlen(prefix), "%d.%d", &pid, &num) != 2)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, num);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno == EACCES)
			sv_say("process %d can't be joined: it may not be looked into (prctl(PR_SET_DUMPABLE), ptrace_scope)", pid);
		if (fd >= 0 && (fstat(fd, &st) || st.st_uid != geteuid() || st.st_size != SV_BYTES)) {
			close(fd);
			fd = -1;
		}
	}
	if (f)
		fclose(f);
	return fd;
}

static int map_segment(int fd)
{
	void *m = mmap(NULL, SV_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (m == MAP_FAILED)
		return errno;
	madvise(m, SV_BYTES, MADV_DONTFORK);
	madvise(m, SV_BYTES, MADV_DONTDUMP);
	sv = m;
	return 0;
}

int sv_attach(void)
{
	int fd = find_segment(), err = fd < 0 ? ENOENT : map_segment(fd);

	if (fd >= 0)
		close(fd);
	return err;
}

static int create_segment(void)
{
	int fd = memfd_create("softverbs", MFD_CLOEXEC), err;

	if (fd < 0 || fchmod(fd, 0600) || ftruncate(fd, SV_BYTES))
		return -1;
	if ((err = map_segment(fd)))
		return errno = err, -1;
	sv->brk = (sizeof(*sv) + 4095) & ~4095ull;
	lock_init(&sv->alloc);
	for (uint32_t p = 0; p < SV_PROCS; p++) {
		lock_init(&sv->proc[p].alive);
		lock_init(&sv->proc[p].atomics);
		for (int r = 0; r < SV_RINGS; r++)
			lock_init(&sv->proc[p].ring[r].lock);
	}
	for (uint32_t i = 0; i < SV_QPS; i++)
		lock_init(&sv->qp[i].lock);
	for (uint32_t i = 0; i < SV_CQS; i++)
		lock_init(&sv->cq[i].lock);
	for (uint32_t i = 0; i < SV_RQS; i++)
		lock_init(&sv->rq[i].lock);
	sv->ready = 1;
	return fd;
}

static int enter(void)
{
	char rest[32];
	int err, old = segment;

	if ((segment = find_segment()) >= 0) {
		if ((err = map_segment(segment)))
			return err;
	} else if ((segment = create_segment()) < 0) {
		return errno;
	}
	if (old >= 0)
		close(old); /* of the parent, before a fork */
	for (uint32_t i = 0; i < SV_PROCS; i++)
		if (sv->proc[i].live && !sv_alive(i))
			bury(i);
	for (sv_me = 0; sv_me < SV_PROCS && sv->proc[sv_me].live; sv_me++)
		;
	if (sv_me == SV_PROCS)
		return EMFILE;
	for (int r = 0; r < SV_RINGS; r++)
		sv->proc[sv_me].ring[r].fd = -1;
	sv->proc[sv_me].pid = getpid();
	sv->proc[sv_me].started = sv_started(getpid());
	__atomic_add_fetch(&sv->proc[sv_me].gen, 1, __ATOMIC_RELEASE);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* Yama: peers fetch our descriptors; fails without Yama */
	if ((err = sv_thread_start()) || (err = sv_pin_open()))
		return err;
	__atomic_store_n(&sv->proc[sv_me].live, 1, __ATOMIC_RELEASE);
	if (beacon >= 0)
		close(beacon);
	snprintf(rest, sizeof(rest), "at.%d.%d", getpid(), segment);
	return (beacon = bind_name(rest)) < 0 ? errno : 0;
}

static void in_child(void) { sv = NULL; } /* MADV_DONTFORK: the mapping is gone */

int sv_open(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	int d, err = 0;

	pthread_mutex_lock(&once);
	if (!sv || opened_by != getpid()) {
		if (!opened_by)
			pthread_atfork(NULL, NULL, in_child), sv_stats_open();
		d = door();
		err = d < 0 ? errno : enter();
		if (d >= 0)
			close(d);
		if (err)
			sv = NULL;
		else
			opened_by = getpid();
	}
	pthread_mutex_unlock(&once);
	return err;
}
