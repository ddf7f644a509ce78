/*
 * What the C side (libpinwheel.so under MPI, libpinwheel-api.so in a transport that
 * links it: on every thread that communicates) and the Go side (libpinwheel-go.so,
 * on threads of its own) share. All of it is C memory, never freed, and lies outside
 * the Go heap. Go reads these types through cgo, so this file is the only
 * definition of them.
 *
 * Who writes what is said beside each field: (C) the thread that owns the
 * struct, (Go) the server or the helper, (both) atomically.
 */
#ifndef PINWHEEL_SHARED_H
#define PINWHEEL_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "table.h"

#define PW_FRAMES 8u    /* = predictor.MaxFrames */
#define PW_DOMAINS 16u  /* protection domains that are managed; more are left alone */
#define PW_ANNOUNCED 64u /* announced buffers remembered for each thread; a power of two */
#define PW_SAMPLE 61u   /* a prime: loops do not fall into step with it */
#define PW_INTERRUPTED (1u << 15) /* ticks, some 10 us: a sample that took longer was interrupted, and is left out */
#define PW_REPORTED 64u  /* reported uses remembered for each thread; a power of two */
#define PW_RING 1024u   /* entries of DQ; a power of two */
#define PW_SITE_CACHE 64u /* call sites that a thread finds without the table that all share; a power of two */
#define PW_FREE_MRS 16u   /* free pw_mr that a thread keeps to itself */
#define PW_MRS (1u << 16) /* pw_mr in use at one time, at most */

/* A call site: return addresses, innermost first. Made once and never changed or freed (site.c), so that
 * uses only point to it. */
struct pw_site {
	uint64_t frames[PW_FRAMES];
};

/*
 * One completed use of a region; helper.Event but for the clock: these are ticks of
 * pw_ticks. With its slot's turn it fills a cache line: one, not two or three, moves
 * to the helper's core and back.
 */
struct pw_event {
	uint64_t region;
	uint64_t start, end; /* addresses used */
	uint64_t start_ticks, end_ticks;
	const struct pw_site *site;
	uint32_t op;    /* enum pw_op */
	uint32_t pages; /* of the whole region */
};

/*
 * DQ of one thread: the C twin of queue.Ring, which has the argument why it is
 * right. Position p lives in slot p mod PW_RING; the slot's turn says whose it is:
 * free: the producer's; taken: the consumer's; ready(p): of who takes it by CAS.
 */
#define PW_TURN_FREE 0ull
#define PW_TURN_TAKEN 1ull
#define PW_TURN_READY(pos) (2 * (pos) + 2)

struct pw_slot {
	struct pw_event item;
	uint64_t turn; /* (both) */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct pw_slot) == 64, "a cache line");

struct pw_ring {
	struct pw_slot slots[PW_RING];
	uint64_t head __attribute__((aligned(128))); /* (C) position of the next push */
	uint64_t lost; /* (C) entries overrun */
	uint64_t tail __attribute__((aligned(128))); /* (Go) position of the next pop */
};

/* What a thread asks the server for, when it isn't a hit. */
enum pw_ask {
	PW_ASK_ACQUIRE = 1, /* a reference; makes the domain and the Local if need be */
	PW_ASK_RELEASE,     /* a reference, of a thread that has no Local there */
	PW_ASK_SWEEP,       /* a reference was the last of a retired registration, perhaps */
	PW_ASK_CLEAN,       /* release what is idle: the kernel refused a registration */
	PW_ASK_CLOSE,       /* the domain's protection domain is about to go */
	PW_ASK_STOP,        /* MPI_Finalize begins: end the helper, release what is idle */

	/* of the API */
	PW_ASK_OPEN,    /* makes the domain */
	PW_ASK_QUERY,   /* a reference to what is registered already; ENOENT if it is not */
	PW_ASK_DROP,    /* as PW_ASK_CLOSE, of a domain that no thread uses: EBUSY if references are out, else its place is free */
	PW_ASK_LIMIT,   /* of the domain, or of the process: mail.bytes, and mail.addr registrations; UINT64_MAX: none */
	PW_ASK_RELEASE_IDLE, /* of the domain, or of all: mail.bytes says how many there were */
	PW_ASK_COUNT,   /* of the domain, or of all: into mail.counts */
	PW_ASK_END,     /* of the server, after PW_ASK_STOP: pw_bind starts another */
};

#define PW_ALL PW_DOMAINS /* mail.domain, where it may be all domains */

/* What was counted: the answer to PW_ASK_COUNT. */
struct pw_counts {
	uint64_t hits, waited, first, late, failed;
	uint64_t helper_registers, helper_deregisters, evicted, invalidated;
	uint64_t pinned_bytes, pinned_regions, peak_pinned_bytes;
};

/*
 * The mailbox of a thread. state is a futex. The thread writes the question,
 * then ASKED; the server takes it (SERVING), writes the answer, then DONE. A thread
 * that has waited too long takes an ASKED question back, or leaves a SERVING one
 * (ABANDONED): then the server undoes what it did.
 */
enum pw_mail { PW_MAIL_IDLE, PW_MAIL_ASKED, PW_MAIL_SERVING, PW_MAIL_DONE, PW_MAIL_ABANDONED };

struct pw_mailbox {
	uint32_t state;
	uint32_t ask;
	uint32_t domain;
	uint32_t access;
	uint64_t addr, bytes;
	struct pwt_ref ref;
	int32_t error; /* 0, or an errno: register it plainly */
	uint32_t pad;
	struct pw_counts counts;
};

/* The MPI call that a buffer was passed to. */
struct pw_call_id {
	uint64_t seq; /* of the call in its thread, counted from 1 */
	uint64_t op;
	const struct pw_site *site;
};

/* A buffer that the program passed to an MPI call. Its registration is attributed to that call. Atomic; see announce.c. */
struct pw_announced {
	uint64_t start, end;
	struct pw_call_id call;
};

struct pw_mr;

struct pw_thread {
	struct pw_thread *next; /* all there ever were */
	uint32_t owned;         /* (both) by a living thread */
	uint32_t index;

	/* (C) the MPI call under way */
	uint32_t depth;
	uint32_t announced_count; /* atomic: buffers announced so far; the newest is at (announced_count - 1) % PW_ANNOUNCED */
	uint64_t seq;
	uint64_t op;
	void **frame; /* frame pointer of the outermost wrapper */
	uint64_t packed_seq;       /* seq of the last call whose buffer has gaps: MPI copies it into memory of its own */
	uint64_t largest;     /* bytes of the largest buffer announced by the call largest_seq */
	uint64_t largest_seq;
	uint64_t stack_end;

	/* (C) counts for the report; atomic, as all those below */
	uint64_t managed, plain_calls, wait_ns, repeated;
	/* (C) what the path costs, of one call and of one hit in PW_SAMPLE: noting its buffers; taking and giving back */
	uint64_t announce_ticks, announce_samples, path_ticks, path_samples;
	uint32_t next_announce, next_path; /* until the next sample */

	void *releasing; /* (C) pd of the domain of which the API gives a reference back just now: needed until that is over */
	struct pw_mr *free_mr[PW_FREE_MRS]; /* (C) see mr.h */
	uint32_t free_mrs;

	struct pwt_local *local[PW_DOMAINS]; /* (Go) atomic: set once for each domain's cache, by the server in an answer */
	struct {
		uint64_t region, seq;
	} reported[PW_REPORTED]; /* (C) uses that were pushed into the ring */
	const struct pw_site *site_cache[PW_SITE_CACHE]; /* (C) by a hash of the frames */
	struct pw_mailbox mail;
	struct pw_announced announced[PW_ANNOUNCED];
	struct pw_announced internal; /* stands for MPI's internal copies of the buffers of the call under way */
	struct pw_ring ring;
};

/* A protection domain of the transport. */
struct pw_domain {
	void *pd;         /* (C) struct ibv_pd, or of the API struct pinwheel_domain; NULL: free; set once until closed */
	uint32_t closing; /* (C) nothing new */
	uint32_t generation; /* (C) how often this slot was taken before, modulo PW_GENERATIONS: part of the IDs that the helper sees */
};
#define PW_GENERATIONS (1u << 12)

enum pw_mode {
	PW_PLAIN,   /* everything goes straight to the transport's registration */
	PW_MANAGED,
};

/* The real calls of libibverbs; errno is set on failure. */
typedef void *(*pw_ibv_reg_fn)(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access);
typedef int (*pw_ibv_dereg_fn)(void *mr);

/* The provider underneath, as the Go side calls it: 0, or an errno. pd is that of a pw_domain. */
struct pw_region {
	void *handle;
	uint32_t lkey, rkey;
};
typedef int (*pw_register_fn)(void *pd, void *addr, size_t bytes, unsigned access, struct pw_region *made);
typedef int (*pw_deregister_fn)(void *pd, void *handle);

/*
 * What PINWHEEL_RECORD makes of one buffer of one call, or of a call without
 * buffer: trace.Record, written by the thread that called MPI_Init. With op
 * PW_COMM it defines a communicator instead: comm is its ID, start_ns its name, addr its
 * members (int32_t, malloc'ed, the reader frees them) and bytes how many they are. With
 * PW_MATCH it says what peer and tag of a request that has ended were.
 */
#define PW_RECORDS (1u << 15) /* a power of two */
#define PW_COMM 255u
#define PW_MATCH 254u
struct pw_record {
	uint64_t start_ns, end_ns, start_cpu_ns, end_cpu_ns;
	uint64_t addr, bytes;
	int32_t peer, tag, comm;
	uint32_t req;
	uint32_t op, dir; /* trace.Op, trace.Dir */
	uint64_t frames[PW_FRAMES];
};

/* Why calls are not in the trace. */
enum pw_left_out { PW_LEFT_THREADS, PW_LEFT_FAILED, PW_LEFT_PERSISTENT, PW_LEFT_MESSAGES, PW_LEFT_CANCELLED, PW_LEFT_COMMS, PW_LEFT_REASONS };

struct pw_recorder {
	uint32_t on;     /* (Go) begins with the next barrier of ours; (C) 0 when it has ended */
	uint32_t failed; /* (both) records were lost; what came before them is good */
	uint32_t end;	 /* (C) the process ends without MPI_Finalize: write what there is */
	uint32_t ended;	 /* (Go) it is written */
	uint64_t left_out[PW_LEFT_REASONS]; /* (C) calls, by enum pw_left_out */
	uint64_t head __attribute__((aligned(64))); /* (C) */
	uint64_t tail __attribute__((aligned(64))); /* (Go) */
	struct pw_record record[PW_RECORDS];
};

struct pw_shared {
	struct pw_shared *next; /* (Go) bound, and not served yet */
	uint32_t mode;       /* (both) enum pw_mode */
	uint32_t started;    /* (Go) futex: 0 until Go has made up its mind, then 1 */
	uint32_t doorbell;       /* (both) futex: rung for every question */
	uint32_t serving;    /* (Go) the server runs */
	uint64_t threshold;  /* (Go) bytes; smaller registrations are left alone */
	uint64_t page_mask;  /* (Go) page size - 1 */
	uint32_t want_events; /* (Go) atomic: there is a helper to hear of uses */
	uint32_t ticks_are_ns; /* (C) pw_ticks has no usable counter and reads the clock */
	struct pw_thread *threads; /* (C) push-only list */
	struct pw_domain domain[PW_DOMAINS];
	pw_register_fn register_region;     /* (C) */
	pw_deregister_fn deregister_region; /* (C) */
	pw_ibv_reg_fn ibv_reg;     /* (C) of the preload library only */
	pw_ibv_dereg_fn ibv_dereg; /* (C) so too */
	char library[64];  /* (C) of MPI, or the transport; for the report */
	uint32_t linked;   /* (C) by a transport: there is no MPI to be seen */
	int32_t rank, size; /* (C) -1 before MPI_Init */
	uint32_t spawned;   /* (C) started by MPI_Comm_spawn: other processes of the job have this rank as well */
	int32_t is_init;    /* (C) atomic: MPI_Init has ended, MPI_Finalize has not begun */
	int32_t comm_cpu;   /* (C) atomic: where a thread asked last */
	uint32_t verbs_used; /* (C) atomic */

	struct pw_recorder *recorder; /* (Go) NULL: no recording */
};

/*
 * What both sides must agree on, in one number: sizes alone do not tell, since
 * alignment hides a new field.
 */
#define PW_MIX(h, n) (((h) ^ (uint64_t)(n)) * 0x9e3779b97f4a7c15ull)
#define PW_LAYOUT \
	PW_MIX(PW_MIX(PW_MIX(PW_MIX(PW_MIX(PW_MIX(PW_MIX(PW_MIX(1, sizeof(struct pw_shared)), offsetof(struct pw_shared, domain)), \
	       offsetof(struct pw_shared, recorder)), sizeof(struct pw_thread)), offsetof(struct pw_thread, local)), \
	       offsetof(struct pw_thread, mail)), sizeof(struct pw_event)), sizeof(struct pw_record) + offsetof(struct pw_recorder, record))

/*
 * Exported by libpinwheel-go.so; C, not Go. Starts a server for the library that
 * s belongs to; 0, or -1 if that was built with another layout than this side.
 */
typedef int (*pw_bind_fn)(struct pw_shared *s, uint64_t layout);

#endif
