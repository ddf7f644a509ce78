/*
 * io_uring instances whose registered buffers are the pinned memory, and transfers between such a buffer and
 * a pipe. A ring serves every process: its descriptor is fetched by pidfd_getfd (the kernel passes none of
 * io_uring by SCM_RIGHTS), its queues are mapped, and the lock in struct sv_proc guards them.
 */
#include "sv.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ENTRIES 4u

struct ring {
	int fd;
	uint32_t gen; /* of the process; 0: not attached */
	void *queues;
	size_t queues_bytes, sqes_bytes;
	unsigned *sq_head, *sq_tail, *sq_array, *cq_head, *cq_tail, sq_mask, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static struct ring ring[SV_PROCS][SV_RINGS];
static pthread_rwlock_t attached = PTHREAD_RWLOCK_INITIALIZER; /* for writing: rings come and go */
static struct io_uring_params params; /* offsets, the same in all processes */

static int setup(void)
{
	memset(&params, 0, sizeof(params));
	return (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
}

static int map(struct ring *r, int fd, uint32_t gen)
{
	const struct io_sqring_offsets *s = &params.sq_off;
	const struct io_cqring_offsets *c = &params.cq_off;
	size_t sq = s->array + params.sq_entries * sizeof(unsigned);
	size_t cq = c->cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	char *m;

	r->queues_bytes = sq > cq ? sq : cq;
	r->sqes_bytes = params.sq_entries * sizeof(*r->sqes);
	m = mmap(NULL, r->queues_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, r->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
	if (m == MAP_FAILED || r->sqes == MAP_FAILED)
		return errno;
	r->queues = m;
	r->sq_head = (unsigned *)(m + s->head), r->sq_tail = (unsigned *)(m + s->tail);
	r->sq_array = (unsigned *)(m + s->array), r->sq_mask = *(unsigned *)(m + s->ring_mask);
	r->cq_head = (unsigned *)(m + c->head), r->cq_tail = (unsigned *)(m + c->tail);
	r->cq_mask = *(unsigned *)(m + c->ring_mask), r->cqes = (struct io_uring_cqe *)(m + c->cqes);
	r->fd = fd, r->gen = gen;
	return 0;
}

int sv_ring_make(uint32_t index, unsigned slots)
{
	struct io_uring_rsrc_register reg = {.nr = slots, .flags = IORING_RSRC_REGISTER_SPARSE};
	int fd, err = 0;

	pthread_rwlock_wrlock(&attached);
	fd = setup();
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) ||
	    syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS2, &reg, sizeof(reg)) < 0)
		err = errno;
	if (!err)
		err = map(&ring[sv_me][index], fd, sv->proc[sv_me].gen);
	if (!err)
		__atomic_store_n(&sv->proc[sv_me].ring[index].fd, fd, __ATOMIC_RELEASE);
	else if (fd >= 0)
		close(fd);
	pthread_rwlock_unlock(&attached);
	return err ? -err : fd;
}

static void drop(struct ring *r)
{
	if (!r->gen)
		return;
	munmap(r->queues, r->queues_bytes);
	munmap(r->sqes, r->sqes_bytes);
	close(r->fd);
	r->gen = 0;
}

/* Of a process that has ended: its memory stays pinned as long as somebody holds its rings. */
void sv_rings_drop(uint32_t proc)
{
	pthread_rwlock_wrlock(&attached);
	for (int i = 0; i < SV_RINGS; i++)
		drop(&ring[proc][i]);
	pthread_rwlock_unlock(&attached);
}

static int attach(uint32_t proc, uint32_t index)
{
	struct ring *r = &ring[proc][index];
	uint32_t gen = sv->proc[proc].gen;
	int fd, err = 0;

	pthread_rwlock_wrlock(&attached);
	if (r->gen != gen) {
		drop(r);
		fd = sv_peer_fd(proc, sv->proc[proc].ring[index].fd);
		err = fd < 0 ? -fd : map(r, fd, gen);
		if (err && fd >= 0)
			close(fd);
	}
	pthread_rwlock_unlock(&attached);
	return err;
}

/* After the death of a process with the lock: what it has queued is taken back, what it has not read is read. */
static void repair(struct ring *r)
{
	__atomic_store_n(r->sq_tail, __atomic_load_n(r->sq_head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	__atomic_store_n(r->cq_head, __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Waits for the transfer under way, if there is one. */
void sv_ring_quiesce(uint32_t index)
{
	if (sv_lock(&sv->proc[sv_me].ring[index].lock))
		repair(&ring[sv_me][index]);
	sv_unlock(&sv->proc[sv_me].ring[index].lock);
}

/* One transfer; the caller holds the ring's lock. */
static ssize_t submit(struct ring *r, enum sv_direction d, int fd, uint64_t addr, unsigned len, unsigned slot)
{
	static uint64_t next;
	uint64_t id = (uint64_t)getpid() << 32 | (uint32_t)__atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
	unsigned tail = *r->sq_tail, head;
	long n;

	r->sqes[tail & r->sq_mask] = (struct io_uring_sqe){
		.opcode = d == SV_OUT ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED,
		.fd = fd, .off = -1ull, .addr = addr, .len = len, .buf_index = (uint16_t)slot, .user_data = id};
	r->sq_array[tail & r->sq_mask] = tail & r->sq_mask;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	do
		n = syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	while (n < 0 && errno == EINTR && *r->sq_head == tail);
	if (n < 0 && errno != EINTR) {
		n = -errno;
		repair(r);
		return n;
	}
	for (;;) {
		while ((head = *r->cq_head) == __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE))
			if (syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
				return -errno;
		struct io_uring_cqe e = r->cqes[head & r->cq_mask];

		__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
		if (e.user_data == id) /* else of a process that was killed */
			return e.res;
	}
}

/* Read-only memory, which io_uring can't register: read where it is mapped, with one copy if that is here. */
static ssize_t read_locked(uint32_t proc, int fd, uint64_t addr, uint64_t len)
{
	char part[1 << 14];
	const void *from = part;
	ssize_t n = (ssize_t)len;

	if (proc == sv_me)
		from = (void *)(uintptr_t)addr;
	else
		n = sv_peer_read(proc, part, addr, len < sizeof(part) ? len : sizeof(part));
	if (n >= 0 && (n = write(fd, from, (size_t)n)) < 0)
		n = -errno;
	return n;
}

/*
 * Moves up to len bytes of a region; returns how many, or -errno. The key is looked at under the lock
 * that its removal takes: the buffer can't go in the meantime.
 */
ssize_t sv_ring_move(uint32_t key, enum sv_direction d, int fd, uint64_t iova, uint64_t len)
{
	struct sv_key *k = &sv->key[key >> 8 & (SV_KEYS - 1)];
	uint32_t proc = k->proc, index = k->ring == SV_LOCKED ? 0 : k->ring;
	ssize_t n = -EFAULT;
	struct ring *r;
	int err;

	if (proc >= SV_PROCS || index >= SV_RINGS)
		return -EFAULT;
	r = &ring[proc][index];
	for (;;) {
		pthread_rwlock_rdlock(&attached);
		if (r->gen == sv->proc[proc].gen)
			break;
		pthread_rwlock_unlock(&attached);
		if ((err = attach(proc, index)))
			return -err;
	}
	if (sv_lock(&sv->proc[proc].ring[index].lock))
		repair(r);
	if (__atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key) {
		uint64_t at = iova - k->iova, room = SV_PIECE - at % SV_PIECE;

		if (k->ring == SV_LOCKED)
			n = d == SV_OUT ? read_locked(proc, fd, k->addr + at, len) : -EACCES;
		else
			n = submit(r, d, fd, k->addr + at, (unsigned)(len < room ? len : room),
				   k->slot + (unsigned)(at / SV_PIECE));
	}
	sv_unlock(&sv->proc[proc].ring[index].lock);
	pthread_rwlock_unlock(&attached);
	return n ? n : -EIO;
}
