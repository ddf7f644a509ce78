/*
 * softverbs: an RDMA device in software for the processes of one user on one machine.
 * The memory that these processes share, and the interfaces between the files.
 *
 * Everything in shared memory survives the death of a process at any instruction: locks are robust,
 * and an update that takes more than one store is written down first (struct sv_cq, redo).
 * Lock order: QP, receive queue, completion queue, alloc; a ring's lock is taken last.
 */
#ifndef SV_H
#define SV_H
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SV_API __attribute__((visibility("default")))
#define SV_PROCS 256
#define SV_RINGS 16
#define SV_KEYS (1u << 16)
#define SV_QP_BITS 13
#define SV_QPS (1u << SV_QP_BITS)
#define SV_CQS (1u << 12)
#define SV_RQS (1u << 13)
#define SV_SGE 16
#define SV_INLINE 256
#define SV_GRH 40
#define SV_LARGE (64u << 10) /* transports copy less through buffers of their own */
#define SV_MAX_WR 16384u
#define SV_MAX_CQE (1u << 18)
#define SV_MAX_MESSAGE (1u << 30)
#define SV_PIECE (1ull << 30) /* the largest buffer that io_uring takes */
#define SV_BYTES (8ull << 30) /* of the segment; sparse */

struct sv_lock {
	pthread_mutex_t mutex;
	uint32_t ready; /* initialized; a slot that is used again keeps its lock */
};

struct sv_proc {
	uint32_t live, gen;
	pid_t pid;
	uint64_t started; /* tells processes with the same number apart */
	struct sv_lock alive;  /* held by the process's device thread as long as that lives */
	struct sv_lock atomics; /* one atomic operation at a time on the memory of this process */
	struct {
		struct sv_lock lock;
		int fd; /* in the process's table */
	} ring[SV_RINGS];
};

struct sv_key {
	uint32_t key; /* index << 8 | generation; 0: free; SV_KEY_BUSY: being made or removed */
	uint32_t gen, proc, pd, access;
	uint32_t ring, slot, slots; /* ring SV_LOCKED: read-only memory, held by mlock */
	uint64_t addr, iova, len;
};
#define SV_KEY_BUSY UINT32_MAX
#define SV_LOCKED UINT32_MAX

/* Where a process hears of things: a pipe that others write to. serial tells pipes with the same number apart. */
struct sv_bell {
	int fd;
	uint32_t serial;
};

struct sv_cqe {
	uint64_t wr_id;
	uint32_t status, opcode, byte_len, imm, qpn, src_qp, flags;
};

enum { SV_OVERRUN = 1, SV_OVERRUN_TOLD }; /* its queue pairs are to go to ERR, or have gone */
struct sv_cq {
	struct sv_lock lock;
	uint32_t live, proc, gen, cap, head, tail, armed, overrun;
	struct sv_bell channel, async;
	uint64_t ring;
	struct {
		uint32_t valid, tail, rq, rq_head;
	} redo; /* a completion of a receive takes an entry of each queue, or of none */
};

struct sv_rwqe {
	uint64_t wr_id;
	uint32_t nsge;
	struct ibv_sge sge[SV_SGE];
};

struct sv_rq {
	struct sv_lock lock;
	uint32_t live, proc, gen, cap, max_sge, head, tail, limit, cq; /* cq: the last one that took a completion */
	struct sv_bell async;
	uint64_t ring;
};

struct sv_qp {
	struct sv_lock lock; /* held by the peer while it works on this side */
	uint32_t live, proc, gen, qpn, type, state, pd, access, dest, scq, rcq, rq, srq, qkey, rnr_timer, established;
	struct sv_bell async;
};

struct sv_shm {
	uint32_t ready, key_next;
	struct sv_lock alloc;
	uint64_t brk, free[40]; /* blocks given back, by the power of two */
	struct sv_proc proc[SV_PROCS];
	struct sv_key key[SV_KEYS];
	struct sv_rq rq[SV_RQS];
	struct sv_cq cq[SV_CQS];
	struct sv_qp qp[SV_QPS];
};

extern struct sv_shm *sv;
extern uint32_t sv_me; /* index of this process */
extern int sv_debug;
extern int sv_engine; /* large requests are the device thread's work, not that of the thread that posts */

#define sv_say(...) (fprintf(stderr, "softverbs[%d]: ", getpid()), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
static inline void *sv_at(uint64_t off) { return (char *)sv + off; }

/* segment.c */
int sv_open(void); /* 0 or an errno */
int sv_attach(void); /* maps the segment of the living processes, for looking at it; 0 or an errno */
int sv_lock(struct sv_lock *l); /* 1 if a process died with it: what it guards may need repair */
void sv_unlock(struct sv_lock *l);
int sv_alive(uint32_t proc);
void sv_bury_dead(void);
uint64_t sv_alloc(uint64_t bytes); /* 0: none left */
void sv_free(uint64_t off, uint64_t bytes);

/* thread.c */
int sv_thread_start(void);
void sv_thread_wake(void);
void sv_thread_watch(uint32_t proc, int pidfd); /* calls sv_rings_drop and sv_peer_drop when that process ends */

/* peer.c: a process that has ended is -ESRCH, even if its number is used again */
uint64_t sv_started(pid_t pid);
int sv_peer_fd(uint32_t proc, int fd); /* a copy of its descriptor, or -errno */
ssize_t sv_peer_read(uint32_t proc, void *to, uint64_t addr, size_t len);
void sv_peer_drop(uint32_t proc);
void sv_refusal(char *line, size_t size, pid_t pid, const char *scope_file);

/* pin.c */
int sv_pin_open(void);
int sv_pin(struct sv_key *k, void *addr, uint64_t len);
int sv_unpin(struct sv_key *k); /* 0, or an errno and all is as it was */

/* ring.c */
enum sv_direction { SV_OUT, SV_IN }; /* out of pinned pages into a pipe, or in from there */
int sv_ring_make(uint32_t index, unsigned slots); /* a ring of this process: its descriptor, or -errno */
ssize_t sv_ring_move(uint32_t key, enum sv_direction d, int fd, uint64_t iova, uint64_t len);
void sv_ring_quiesce(uint32_t index);
void sv_rings_drop(uint32_t proc);

/* move.c: bytes between memory regions */
struct sv_side {
	uint32_t proc;
	int nsge;
	const struct ibv_sge *sge;
	const void *inlined; /* instead of sge */
	int send; /* this process's source of a send */
};
enum { SV_MOVE_SRC = 1, SV_MOVE_DST = 2 }; /* the side that failed */
int sv_move(const struct sv_side *dst, const struct sv_side *src, uint64_t bytes);
int sv_fetch(const struct sv_side *src, uint64_t *value);

/* mr.c */
void sv_pd_count(struct ibv_pd *pd, int n);
int sv_key_permits(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr, uint64_t len, uint32_t access);

/* bell.c: news from other processes */
struct sv_note {
	uint32_t type, index, gen;
};
int sv_bell_make(int *reader, struct sv_bell *b);
void sv_bell_ring(uint32_t proc, const struct sv_bell *b, struct sv_note n);

/* cq.c */
struct sv_cqe *sv_cqe_begin(struct sv_cq *q); /* locks; NULL if the queue is full or was, and then it is not locked */
void sv_cqe_end(struct sv_cq *q, int solicited);
void sv_cq_count(struct ibv_cq *cq, int n); /* queue pairs that use it */
void sv_cq_lock(struct sv_cq *q);
void sv_complete(uint32_t cq, const struct sv_cqe *e, int solicited);
void sv_cq_check(uint32_t cq); /* after a chance of an overrun */
void sv_cq_forget(uint32_t cq, uint32_t qpn);
struct ibv_cq *sv_cq_of(uint32_t index, uint32_t gen);
int sv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int sv_req_notify_cq(struct ibv_cq *cq, int solicited);

/* rq.c */
uint32_t sv_rq_make(uint32_t wr, uint32_t sge, struct sv_bell async); /* 0: none left */
void sv_rq_take(struct sv_rq *q, struct sv_cq *c, int solicited); /* ends a completion of its first entry */
void sv_rq_end(uint32_t rq);
void sv_rq_lock(struct sv_rq *q);
int sv_rq_post(struct sv_rq *q, const uint32_t *state, struct ibv_recv_wr **wr);
int sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void sv_srq_count(struct ibv_srq *srq, int n);
struct ibv_srq *sv_srq_of(uint32_t index, uint32_t gen);

/* cost.c */
extern struct sv_cost {
	uint64_t ns, page_ns;
} sv_register_cost, sv_deregister_cost;
int sv_cost_open(void); /* reads the environment; EINVAL after a line that says what is wrong with it */
uint64_t sv_cost_begin(const struct sv_cost *c);
void sv_cost_pay(const struct sv_cost *c, uint64_t begin, uint64_t addr, uint64_t len);

/* stats.c */
void sv_stats_open(void);
void sv_stats_region(uint64_t bytes);
void sv_stats_request(uint32_t opcode, uint64_t bytes);

/* device.c */
struct sv_bell sv_async_bell(struct ibv_context *c);

/* qp.c, send.c, respond.c */
struct sv_work {
	struct sv_work *next;
	uint64_t wr_id, remote, bytes, compare_add, swap, retry_at; /* ns of CLOCK_MONOTONIC */
	uint32_t opcode, flags, imm, rkey, qpn, qkey, rnr_left, retries_left;
	int nsge;
	struct ibv_sge sge[SV_SGE];
	unsigned char data[SV_INLINE];
};
struct sv_qp_obj {
	struct ibv_qp qp;
	struct sv_qp *s;
	pthread_mutex_t lock; /* the send queue */
	uint32_t sig_all, queued, pending, max_send_wr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct sv_work *first, *last;
	struct sv_qp_obj *next_waiting;
};
enum { SV_NOT_READY = -1, SV_NO_ANSWER = -2 }; /* beside enum ibv_wc_status: try again */
struct sv_qp_obj *sv_qp_of(uint32_t qpn);
enum ibv_wc_opcode sv_wc_opcode(uint32_t wr_opcode);
int sv_respond(struct sv_qp_obj *p, struct sv_work *w, uint32_t *rnr_timer);
#define SV_QUIETLY ((enum ibv_event_type)-1)
void sv_qp_fail(struct sv_qp *q, enum ibv_event_type why); /* to ERR, receives flushed; with its lock held */
int sv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
uint64_t sv_retry_waiting(void); /* when to call it again, in ns of CLOCK_MONOTONIC; UINT64_MAX: nothing waits */
void sv_send_flush(struct sv_qp_obj *p, int silently);
#endif
