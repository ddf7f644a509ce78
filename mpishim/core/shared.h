/*
 * The memory that the C side and the Go side share. The C side is libpinwheel.so under MPI
 * or libpinwheel-api.so in a transport, on every thread that communicates. The Go side is
 * libpinwheel-go.so, on threads of its own. All of this memory is C's and is never
 * freed. Go reads these types through cgo, so this file is their only definition.
 *
 * A mark beside each field names its writer: (C) the thread that owns the struct,
 * (Go) the server or the helper, (both) either, atomically.
 */
#ifndef PINWHEEL_SHARED_H
#define PINWHEEL_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "grant.h"
#include "table.h"

#define PW_FRAMES 8u    /* = predictor.MaxFrames */
#define PW_DOMAINS 16u  /* protection domains that are managed at a time, at most */
#define PW_ANNOUNCED 64u /* announced buffers remembered for each thread; a power of two */
#define PW_SAMPLE 61u   /* a prime: loops do not fall into step with it */
#define PW_INTERRUPTED (1u << 15) /* ticks, some 10 us. A longer sample includes an interruption and is dropped. */
#define PW_REPORTED 64u  /* reported uses remembered for each thread; a power of two */
#define PW_RING 1024u   /* entries of DQ; a power of two */
#define PW_SITE_CACHE 64u /* call sites that a thread finds without the table that all share; a power of two */
#define PW_FREE_MRS 16u   /* free pw_mr that a thread keeps to itself */
#define PW_MRS (1u << 16) /* pw_mr in use at one time, at most */

/* A call site: return addresses, innermost first. site.c makes each once and never frees it, so a use holds only a
 * pointer. What follows the frames is about uses on demand (preload/demand.h). All of it is atomic, and any thread
 * adds to the counts; they are those of schedule.DemandCounts. */
struct pw_site {
	uint64_t frames[PW_FRAMES];
	struct pw_site *next; /* in pw_shared.sites */
	uint32_t kept;        /* (Go) memory stays registered after its use */
	uint64_t uses, freed;
	uint64_t spent_ticks;
	uint64_t saved; /* pages times PW_LONG_TICKS ticks */
	uint32_t fresh, fresh_needed; /* (C) misses of memory that had not come before; more have the next one on demand */
} __attribute__((aligned(64)));

/* The end of the latest use of a buffer, whose registration is on demand. Atomic; the words of an entry are of two
 * buffers at worst, which only misleads. */
struct pw_last_use {
	uint64_t start;  /* of the buffer; 0: none */
	uint64_t region; /* as in pw_event; 0 if it was deregistered */
	uint64_t end_ticks;
	struct pw_site *site;
};
#define PW_LAST_USES 1024u /* a power of two */
#define PW_LONG_TICKS 1024u /* for sums that would overflow otherwise */

/*
 * One completed use of a region. It is schedule.Event, with times in ticks of pw_ticks.
 * Together with the turn of its slot it fills one cache line, so only one line moves to the
 * helper's core and back.
 */
struct pw_event {
	uint64_t region; /* or PW_EVENT_EARLY, the domain, and the access rights in place of the region */
	uint64_t start, end; /* addresses used */
	uint64_t start_ticks, end_ticks;
	const struct pw_site *site;
	uint32_t op;    /* enum pw_op */
	uint32_t pages; /* of the whole region */
};

/* Of a buffer that was registered past the cache of its domain, which was opening and knew no regions. */
#define PW_EVENT_EARLY (1ull << 63)

/*
 * DQ of one thread, the C twin of queue.Ring. The argument why it is correct is there. Position p
 * lives in slot p mod PW_RING, and the turn of the slot names its owner: FREE is the
 * producer, TAKEN the consumer, and READY(p) belongs to whoever takes it by CAS.
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

/* Questions of a thread to the server. A hit asks none. */
enum pw_ask {
	PW_ASK_ACQUIRE = 1, /* get a reference; creates the domain and the Local if need be, or has the domain opening */
	PW_ASK_RELEASE,     /* put a reference of a thread that has no Local of the domain */
	PW_ASK_SWEEP,       /* the reference may have been the last of a retired registration */
	PW_ASK_CLEAN,       /* deregister what is idle, since the kernel refused a registration */
	PW_ASK_CLOSE,       /* the protection domain is about to be destroyed, and its slot is never used again */
	/* PW_ASK_CLOSE for a domain that no thread uses. EBUSY if one does, or references are out; else its slot is free. */
	PW_ASK_DROP,
	PW_ASK_STOP,        /* MPI_Finalize begins: end the helper and deregister what is idle */
	PW_ASK_SAVE,        /* the process ends without MPI_Finalize: keep what was learned */
	PW_ASK_ROOM,        /* plain_bytes has exceeded plain_room: make room for it. ENOMEM if the budget has none and linked */

	/* The API asks these. */
	PW_ASK_OPEN,    /* create the domain */
	PW_ASK_QUERY,   /* get a reference if the memory is registered; else ENOENT */
	/* limit the domain or the process to mail.bytes bytes and mail.addr registrations; UINT64_MAX means no
	 * limit */
	PW_ASK_LIMIT,
	PW_ASK_RELEASE_IDLE, /* deregister what is idle in the domain or in all; mail.bytes returns how many */
	PW_ASK_COUNT,   /* count for the domain or for all, into mail.counts */
	PW_ASK_PREPARE, /* begin to register the memory ahead of its first use, as the thread's prepare says */
	PW_ASK_END,     /* end the server, after PW_ASK_STOP; pw_bind starts another */
};

#define PW_ALL PW_DOMAINS /* as mail.domain: all domains */

/* The MPI call that a buffer was passed to. */
struct pw_call_id {
	uint64_t seq; /* of the call in its thread, counted from 1 */
	uint64_t op;
	struct pw_site *site;
};

/* What a thread notes of a use that it has registered by itself, for the report (struct pwt_grant). Times are
 * of CLOCK_MONOTONIC in nanoseconds, the site is a pointer. */
enum pw_note { PW_NOTE_START, PW_NOTE_END, PW_NOTE_OP, PW_NOTE_SITE };

/* The answer to PW_ASK_COUNT. */
struct pw_counts {
	uint64_t hits, waited, first, late, failed;
	uint64_t helper_registers, helper_deregisters, evicted, invalidated;
	uint64_t pinned_bytes, pinned_regions, peak_pinned_bytes;
};

/*
 * The mailbox of a thread. state is a futex. The thread writes the question and then
 * ASKED. The server takes the question (SERVING), writes the answer and then DONE. A thread
 * that has waited too long withdraws an ASKED question, or marks a SERVING one
 * ABANDONED. The server then undoes what it did.
 */
enum pw_mail { PW_MAIL_IDLE, PW_MAIL_ASKED, PW_MAIL_SERVING, PW_MAIL_DONE, PW_MAIL_ABANDONED };

struct pw_mailbox {
	uint32_t state;
	uint32_t ask;
	uint32_t domain;
	uint32_t access;
	uint64_t addr, bytes;
	uint64_t asked_ns; /* when, by CLOCK_MONOTONIC */
	struct pw_call_id call; /* the memory was passed to; for the report */
	struct pwt_ref ref;
	int32_t error; /* 0 or an errno; on an error the thread registers past the cache */
	uint32_t pad;
	struct pw_counts counts;
};

/*
 * What a thread waits for that has asked to PW_ASK_PREPARE. state is a futex. The thread writes what it wants and then
 * ASKED. The server makes that RUNNING and, after error, DONE. A thread to which nobody answers makes ASKED IDLE.
 */
enum pw_prepare_state { PW_PREPARE_IDLE, PW_PREPARE_ASKED, PW_PREPARE_RUNNING, PW_PREPARE_DONE };

struct pw_prepare {
	uint32_t state;   /* (both) */
	uint32_t cancel;  /* (C) atomic: it should end */
	uint64_t done;    /* (Go) atomic: bytes whose pages are there */
	uint32_t threads; /* (C) 0: as many as processors are idle */
	uint32_t tid;     /* (C) of the thread, whose affinity counts */
	int32_t cpu;      /* (C) where it runs */
	int32_t error;    /* (Go) 0 or an errno */
};

/* A buffer that the program passed to an MPI call. Its registration is attributed to that call.
 * Atomic; see announce.c. */
struct pw_announced {
	uint64_t start, end;
	struct pw_call_id call;
};

struct pw_mr;

struct pw_thread {
	struct pw_thread *next; /* the list has all threads that ever were */
	uint32_t owned;         /* (both) a living thread has this block */
	uint32_t index;

	/* (C) the MPI call under way */
	uint32_t depth;
	uint32_t announced_count; /* atomic: buffers announced so far; the newest is at (announced_count - 1) % PW_ANNOUNCED */
	uint64_t seq; /* atomic: of this call; so many were wrapped so far, without those that MPI makes by itself */
	uint64_t op;
	void **frame; /* frame pointer of the outermost wrapper */
	uint32_t relays;	/* MPI passes the data of this call on by calls of its own */
	uint32_t by_profiling;	/* it was called as PMPI_x */
	/* seq of the last call whose buffer has gaps. MPI packs such data into memory of its own. */
	uint64_t packed_seq;
	uint64_t largest;     /* bytes of the largest buffer announced by the call largest_seq */
	uint64_t largest_seq;
	uint64_t stack_end;

	/* (C) counts for the report; these and all fields below are atomic */
	uint64_t managed, plain_calls, wait_ns, repeated;
	/* registrations past the cache, as large as messages, that came and went between MPI_Init and MPI_Finalize */
	uint64_t passed, passed_bytes;
	uint64_t early; /* of plain_calls, those of a domain whose cache waits for changes of mappings to be noticed */
	/* (C) the cost of the path: announcing buffers, and get and put of a hit; one of PW_SAMPLE is measured */
	uint64_t announce_ticks, announce_samples, path_ticks, path_samples;
	uint32_t next_announce, next_path; /* how many follow until the next sample */

	/* (C) pd of the domain that the thread uses right now: the API, whose reference it puts. The cache must stay until
	 * that is over */
	void *using;
	struct pw_mr *free_mr[PW_FREE_MRS]; /* (C) see mr.h */
	uint32_t free_mrs;

	/* (Go) atomic: the server sets it as part of an answer, and to NULL before the cache is gone */
	struct pwt_local *local[PW_DOMAINS];
	struct {
		uint64_t region, seq;
	} reported[PW_REPORTED]; /* (C) uses that were pushed into the ring */
	struct pw_site *site_cache[PW_SITE_CACHE]; /* (C) by a hash of the frames */
	struct pw_mailbox mail;
	struct pw_prepare prepare;
	struct pw_announced announced[PW_ANNOUNCED];
	struct pw_announced internal; /* stands for MPI's internal copies of the buffers of the call under way */
	struct pw_ring ring;
};

/* A protection domain of the transport. */
struct pw_domain {
	void *pd;         /* (C) struct ibv_pd, or the API's struct pinwheel_domain; NULL while the slot is free */
	uint32_t closing; /* (C) atomic: nothing new is registered (preload/domain.h) */
	/* (C) how often this slot was taken, modulo PW_GENERATIONS; part of the region IDs that the helper sees */
	uint32_t generation;
	uint32_t opening; /* (Go) atomic: there is no cache yet, so memory is registered past it without a question */
};
#define PW_GENERATIONS (1u << 11) /* PW_EVENT_EARLY stays free */
#define PW_TAG_SHIFT 48u /* where pw_domain_tag is in the region IDs that the helper sees */
_Static_assert((uint64_t)PW_GENERATIONS * PW_DOMAINS << PW_TAG_SHIFT == PW_EVENT_EARLY, "tags of domains");

enum pw_mode {
	PW_PLAIN,      /* every registration goes straight to the transport */
	PW_MANAGED,
	PW_UNANSWERED, /* likewise plain, since the server did not answer; once it does, it manages again */
};

/* The real calls of libibverbs. They set errno on failure. */
typedef void *(*pw_ibv_reg_fn)(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access);
typedef int (*pw_ibv_dereg_fn)(void *mr);

/* The provider, as the Go side calls it. Both functions return 0 or an errno. pd is that of a pw_domain. */
struct pw_region {
	void *handle;
	uint32_t lkey, rkey;
};
typedef int (*pw_register_fn)(void *pd, void *addr, size_t bytes, unsigned access, struct pw_region *made);
typedef int (*pw_deregister_fn)(void *pd, void *handle);

/*
 * One record of PINWHEEL_RECORD: one buffer of one call, or a call without buffers. It is
 * trace.Record, and the thread that called MPI_Init writes it. With op PW_COMM it
 * defines a communicator: comm is its ID, start_ns its global ID, addr its members
 * (int32_t, malloc'ed, freed by the reader) and bytes their number. With op PW_MATCH it gives
 * the peer and the tag of a request that has completed. With op PW_UNNAMED it is a registration of memory that no
 * call was given.
 */
#define PW_RECORDS (1u << 15) /* a power of two */
#define PW_COMM 255u
#define PW_MATCH 254u
#define PW_UNNAMED 253u
struct pw_record {
	uint64_t start_ns, end_ns, start_cpu_ns, end_cpu_ns;
	uint64_t addr, bytes;
	int32_t peer, tag, comm;
	uint32_t req;
	uint32_t op, dir; /* trace.Op, trace.Dir */
	uint64_t changes; /* pw_recorder.changes before the call; 0 if it was not known */
	uint64_t frames[PW_FRAMES];
};

/* The reasons why calls are missing from the trace. */
enum pw_left_out {
	PW_LEFT_THREADS, PW_LEFT_FAILED, PW_LEFT_PERSISTENT, PW_LEFT_MESSAGES, PW_LEFT_CANCELLED,
	PW_LEFT_COMMS, PW_LEFT_REASONS,
};

struct pw_recorder {
	uint32_t on;     /* (C) recording has begun */
	uint32_t failed; /* (both) records were lost; the trace up to them is good */
	uint32_t end;	 /* (C) the process ends without MPI_Finalize: Go writes what there is */
	uint32_t ended;	 /* (Go) the trace is written */
	uint64_t left_out[PW_LEFT_REASONS]; /* (C) calls, by enum pw_left_out */
	/* (Go) atomic: counts changes of mappings, those of memory that interest counts (regcache/grant.h); NULL: nobody
	 * notices any. */
	const uint64_t *changes;
	uint32_t *interest; /* (Go) set before changes */
	uint64_t interested[PWT_GRANULE_COUNT / 64]; /* (C) granules that were counted: they had recorded buffers */
	uint64_t head __attribute__((aligned(64))); /* (C) */
	uint64_t tail __attribute__((aligned(64))); /* (Go) */
	struct pw_record record[PW_RECORDS];
};

struct pw_shared {
	struct pw_shared *next; /* (Go) in the list of those that no server has taken yet */
	uint32_t mode;       /* (both) enum pw_mode */
	uint32_t started;    /* (Go) futex: 0 until Go is ready or has given up, then 1 */
	uint32_t doorbell;       /* (both) futex: every question rings it, and what is unpublished, once used */
	uint32_t unpublished; /* (both) atomic: a thread has registered something by itself, and not rung yet */
	uint32_t serving;    /* (Go) a server runs */
	uint64_t threshold;  /* (Go) bytes; smaller registrations pass through */
	/* (both) atomic: bytes of a message that is looked at: the threshold, or less until one came near it */
	uint64_t notice;
	uint64_t page_mask;  /* (C) page size - 1 */
	uint32_t near;       /* (C) atomic: a message came near the threshold, so large ones may follow */
	uint32_t want_events; /* (Go) atomic: a helper runs and wants to hear of uses */
	uint32_t ticks_are_ns; /* (C) pw_ticks has no usable counter and reads the clock */
	struct pw_thread *threads; /* (C) push-only list */
	struct pw_domain domain[PW_DOMAINS];
	pw_register_fn register_region;     /* (C) */
	pw_deregister_fn deregister_region; /* (C) */
	pw_ibv_reg_fn ibv_reg;     /* (C) of the preload library only */
	pw_ibv_dereg_fn ibv_dereg; /* (C) so too */
	char library[64];  /* (C) name of the MPI library or the transport, for the report */
	uint32_t linked;   /* (C) a transport links the library, so no MPI call is seen */
	int32_t rank, size; /* (C) -1 before MPI_Init */
	uint32_t spawned;   /* (C) MPI_Comm_spawn has started this process, so other processes of the job have the same rank */
	int32_t is_init;    /* (C) atomic: MPI_Init has ended, MPI_Finalize has not begun */
	int32_t comm_cpu;   /* (C) atomic: processor of the thread that registered or asked last */
	uint32_t verbs_used; /* (C) atomic */
	uint64_t caller; /* (C) atomic: where the transport last registered what was no hit; 0: unknown. For the report */
	uint32_t kept_regs;  /* (C) managed and early registrations that the transport had when MPI_Finalize began */

	/*
	 * Registrations on demand, while the helper has no processor of its own, and of memory that is never used twice:
	 * preload/demand.h. All are atomic, and any thread adds to those of C.
	 */
	struct pw_site *sites; /* (C) push-only list */
	uint64_t demand_limit; /* (Go) demand_ticks up to which memory is registered on demand; 0: none is, unless it is fresh */
	uint32_t demand_fresh; /* (Go) memory is registered on demand where it is never used twice */
	uint64_t demand_ticks; /* (C) what a cache would have spared */
	uint64_t demand_uses, demand_all_ticks; /* (C) all uses on demand, and what their registrations took */
	uint64_t demand_fresh_uses; /* (C) of demand_uses, those of fresh memory */
	uint64_t demand_bytes, demand_peak_bytes; /* (C) registered on demand now, and at most */
	uint64_t demand_held; /* (C) pages times PW_LONG_TICKS ticks for which they were registered on demand */
	struct pw_last_use last_uses[PW_LAST_USES]; /* (C) by a hash of start */

	uint64_t plain_bytes; /* (C) atomic: registered past the cache, or about to be */
	uint64_t plain_room;  /* (Go) atomic: what of the budget is set aside for that; UINT64_MAX: the node has no budget */

	struct pw_recorder *recorder; /* (Go) NULL if nothing is recorded */
};

/* Raised with each change of what the questions, or words that both sides use, mean. */
#define PW_PROTOCOL 7

/*
 * The layout that both sides must agree on, as one number. It mixes offsets with sizes, because
 * alignment can hide a new field from a size.
 */
#define PW_MIX(h, n) (((h) ^ (uint64_t)(n)) * 0x9e3779b97f4a7c15ull)
#define PW_LAYOUT_TABLE \
	PW_MIX(PW_MIX(PW_MIX(PW_MIX(PW_PROTOCOL, PW_ASK_END), sizeof(struct pwt_header)), sizeof(struct pwt_entry)), \
	       sizeof(struct pwt_grants))
#define PW_LAYOUT_SHARED \
	PW_MIX(PW_MIX(PW_MIX(PW_LAYOUT_TABLE, sizeof(struct pw_shared)), offsetof(struct pw_shared, domain)), \
	       offsetof(struct pw_shared, recorder))
#define PW_LAYOUT_THREAD \
	PW_MIX(PW_MIX(PW_MIX(PW_LAYOUT_SHARED, sizeof(struct pw_thread)), offsetof(struct pw_thread, local)), \
	       offsetof(struct pw_thread, mail))
#define PW_LAYOUT \
	PW_MIX(PW_MIX(PW_LAYOUT_THREAD, sizeof(struct pw_event)), \
	       sizeof(struct pw_record) + offsetof(struct pw_recorder, record))

/*
 * The C function pw_bind, which libpinwheel-go.so exports. It starts a server for the library
 * that s belongs to. It returns 0, or -1 if that library was built with another layout.
 */
typedef int (*pw_bind_fn)(struct pw_shared *s, uint64_t layout);

#endif
