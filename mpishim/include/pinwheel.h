/*
 * pinwheel.h - just-in-time memory registration for RDMA transports.
 *
 * A transport that links Pinwheel asks it for a registration before each large
 * transfer (pinwheel_acquire) and gives it back afterwards (pinwheel_release).
 * Between the two the memory is registered. Afterwards a helper thread on an
 * idle core deregisters it, and registers it again just before its next use, which it
 * predicts; so that registered memory is what is needed now, and the path of
 * communication seldom waits for a registration.
 *
 * How memory is registered is the transport's business: it gives two callbacks
 * for each domain (a protection domain, or whatever registrations belong to).
 * For plain libibverbs they are in <pinwheel_verbs.h>.
 *
 * Errors are returned as negative errno values; strerror(3) names them. errno
 * itself means nothing afterwards. Sizes are bytes, times are nanoseconds. Every
 * function may be called by any thread at any time, except where it says otherwise;
 * none of them from a callback or a signal handler.
 *
 * A fault of Pinwheel is none of the transport's: without its helper library,
 * without a way to notice that mappings change, with PINWHEEL_DISABLE=y, in the
 * child of a fork, or after an internal fault, every acquire registers through the
 * callback in its own thread and every release deregisters. One line on standard error says
 * so, unless it was asked for. The settings are the environment variables
 * PINWHEEL_*: see pinwheel(1).
 *
 * Needs C99 or C++98. See pinwheel(3).
 */
#ifndef PINWHEEL_H
#define PINWHEEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: that of the soname. */
#define PINWHEEL_API_VERSION 0

struct pinwheel;        /* the library, in use */
struct pinwheel_domain; /* what registrations belong to */

/*
 * Rights to registered memory, numbered as enum ibv_access_flags. Local reading is
 * implied. Other bits are handed to the callback as they are; what is registered
 * with them is not kept beyond its use.
 */
enum pinwheel_access {
	PINWHEEL_LOCAL_WRITE = 1 << 0,
	PINWHEEL_REMOTE_WRITE = 1 << 1,
	PINWHEEL_REMOTE_READ = 1 << 2,
	PINWHEEL_REMOTE_ATOMIC = 1 << 3,
	PINWHEEL_RELAXED_ORDERING = 1 << 20
};

#define PINWHEEL_UNLIMITED UINT64_MAX

/*
 * What pinwheel_init may be told. Set size to sizeof(struct pinwheel_options) and
 * everything that is not known to zero.
 */
struct pinwheel_options {
	size_t size;
	const char *name; /* of the transport, for the report; copied, up to 63 bytes */
	/*
	 * The rank of this process in its job, and the number of ranks; 0 ranks if
	 * there is no such thing. What concerns all processes of a job alike only rank 0 says.
	 */
	int rank, ranks;
};

/*
 * Loads the helper library and starts its threads, at the first call; counts the
 * calls otherwise. May take some 100 ms. The process goes on as it was: signal
 * dispositions and masks, the affinity of the caller and its limits stay.
 *
 * options may be NULL. Those of the first call count, until the last pinwheel_fini.
 *
 * Returns 0 and *pw, which is good until as many calls of pinwheel_fini; -EINVAL.
 */
int pinwheel_init(const struct pinwheel_options *options, struct pinwheel **pw);

/*
 * Ends what pinwheel_init began. The last call ends the helper thread and writes
 * the report that PINWHEEL_STATS asks for. The libraries stay loaded, asleep:
 * pinwheel_init may be called again.
 *
 * Returns 0; -EBUSY, and nothing has happened, if this is the last and a domain is open; -EINVAL.
 */
int pinwheel_fini(struct pinwheel *pw);

/* A registration, as the callback made it. */
struct pinwheel_region {
	void *handle; /* whatever the transport needs to know it by, such as struct ibv_mr * */
	uint32_t lkey, rkey;
};

/*
 * How a domain registers. Both callbacks are called in the threads that acquire
 * and release, and in threads of Pinwheel, several at a time. They must not call this
 * interface, and must not wait for a thread that does.
 *
 * reg registers len bytes from addr, which are whole pages unless the registration is
 * for one use, and may be more than was asked for; the keys must be valid at the
 * addresses of the memory itself. It fills in *region and returns 0, or returns a
 * negative errno. After -ENOMEM, -EAGAIN or -ENOSPC what is idle is deregistered,
 * and it is called again. arg is what pinwheel_domain_open was given.
 *
 * dereg ends a registration; it returns 0 or a negative errno. After -EBUSY it is
 * called again, a few times; after anything else the registration is given up: it
 * counts as pinned for as long as the domain is open. What it returns for a
 * registration for one use pinwheel_release returns, and that is the end of it.
 */
struct pinwheel_ops {
	size_t size; /* sizeof(struct pinwheel_ops) */
	int (*reg)(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region);
	int (*dereg)(void *arg, void *handle);
};

/*
 * Opens a domain. ops is copied; arg must stay good until the domain is closed.
 * Sixteen domains are managed at a time; one more registers for each use, and one line says so.
 *
 * Returns 0 and *domain, to be given to pinwheel_domain_close; -EINVAL; -ENOMEM.
 */
int pinwheel_domain_open(struct pinwheel *pw, const struct pinwheel_ops *ops, void *arg, struct pinwheel_domain **domain);

/*
 * Closes a domain. All of its idle registrations are deregistered before it
 * returns. No other call with this domain may be under way, or follow, except
 * pinwheel_release before this returns 0.
 *
 * Returns 0: the domain is gone, its callbacks are called no more, and the
 * protection domain below can be destroyed. -EBUSY: uses of it are not released yet;
 * nothing can be acquired (-ESHUTDOWN), each release deregisters, and
 * pinwheel_domain_close is to be called again after the last. -ETIMEDOUT: the helper library has died,
 * and what it had registered stays so; the domain is gone. -EINVAL.
 */
int pinwheel_domain_close(struct pinwheel_domain *domain);

/*
 * One use of registered memory: a transport has one in each of its requests.
 * pinwheel_acquire fills it in. It must not be copied or moved, nor its memory be
 * freed, before pinwheel_release.
 */
struct pinwheel_use {
	uint32_t lkey, rkey; /* of the registration; valid at the addresses of the memory */
	void *handle;        /* what the callback gave; belongs to the registration, which others may share */
	uint64_t opaque[18];
};

/*
 * Makes memory usable for a transfer: returns when len bytes from addr are
 * registered with the rights access. They stay so until pinwheel_release(use),
 * even if they are unmapped meanwhile. The bytes are those of a mapping; to
 * change or unmap it while nothing is acquired needs no call.
 *
 * site identifies where the transfer comes from, so that its repetition can be
 * recognised: any number that is the same whenever the program does the same,
 * such as one for each kind of transfer and its peer. 0: the return addresses on
 * the stack serve, which the callers must have frame pointers for; threads that run
 * on stacks of their own making (coroutines) must give a number.
 *
 * A hit, which is the rule, makes no system call, allocates nothing, takes no lock
 * and waits for nobody. Anything else asks a thread of Pinwheel, or registers right here.
 * Uses of fewer bytes than PINWHEEL_THRESHOLD (16 KiB) are served, but not predicted:
 * their memory stays registered. Copying such messages through memory that is
 * registered anyhow is usually better.
 *
 * Returns 0 and *use, to be released once. -ENOMEM if what is in use leaves no room
 * below the limits: copy, or wait for a release. What the callback failed with,
 * if making room did not help. -ESHUTDOWN: the domain is closing. -EINVAL: no memory,
 * or beyond the end of the address space.
 */
int pinwheel_acquire(struct pinwheel_domain *domain, const void *addr, size_t len, unsigned access, uint64_t site,
		     struct pinwheel_use *use);

/*
 * pinwheel_acquire for what is registered already: registers nothing. To choose
 * between zero-copy and a copy. A yes costs as much as a hit; for a no
 * the helper library is asked, which takes microseconds.
 *
 * Returns 0 and *use; -ENOENT if the memory, or a part of it, is not registered
 * with these rights; -EINVAL.
 */
int pinwheel_try_acquire(struct pinwheel_domain *domain, const void *addr, size_t len, unsigned access, uint64_t site,
			 struct pinwheel_use *use);

/*
 * Ends a use: the transfer has completed. Any thread may call it. Afterwards *use
 * holds nothing; releasing that fails.
 *
 * Returns 0; -EINVAL if use holds nothing; what dereg failed with, if the
 * registration was for this use alone and made in this thread; -ENOMEM, and nothing has
 * happened, if there is no memory for the first call of a thread.
 */
int pinwheel_release(struct pinwheel_use *use);

/*
 * Whether len bytes from addr are registered with the rights access, at this
 * moment; a moment later they need not be. Registers nothing. A yes counts as a hit.
 *
 * Returns 1 or 0; -EINVAL.
 */
int pinwheel_is_registered(struct pinwheel_domain *domain, const void *addr, size_t len, unsigned access);

/* Bounds of what is registered at a time; PINWHEEL_UNLIMITED for none. */
struct pinwheel_limits {
	size_t size;      /* sizeof(struct pinwheel_limits) */
	uint64_t bytes;   /* of whole pages; a page in two registrations counts twice */
	uint64_t regions; /* registrations */
};

/*
 * Bounds what Pinwheel keeps registered: in one domain, or with NULL for domain, in
 * the process. What is idle is deregistered until the rest fits; what is in use
 * stays. An acquire that would exceed the limits, with nothing idle left, fails with -ENOMEM.
 * A limit of the process does not exceed that of PINWHEEL_BUDGET, and lasts until the last pinwheel_fini.
 *
 * Returns 0; -EINVAL; an error of dereg.
 */
int pinwheel_limits(struct pinwheel *pw, struct pinwheel_domain *domain, const struct pinwheel_limits *limits);

/*
 * Deregisters all that is idle: in one domain, or with NULL for domain, in all.
 * Before a fork, for instance, or when memory is wanted elsewhere.
 *
 * Returns the number of registrations that were ended; -EINVAL; an error of dereg.
 */
int pinwheel_clean(struct pinwheel *pw, struct pinwheel_domain *domain);

/*
 * Counts since the domain was opened, or with NULL for domain, since the first
 * pinwheel_init, of all domains. Later versions may have more: size says how many there are.
 */
struct pinwheel_stats {
	size_t size;     /* sizeof(struct pinwheel_stats) */
	uint64_t hits;   /* uses that found their memory registered */
	uint64_t waited; /* uses that waited for another thread to register it */
	uint64_t first;  /* uses of memory that never had been registered, which registered it */
	uint64_t late;   /* uses of memory that had been, and registered it again */
	uint64_t plain;  /* uses that were registered for themselves alone, in the thread of the caller */
	uint64_t failed; /* registrations that failed for good */

	uint64_t helper_registrations;   /* done ahead of a use, by the helper thread */
	uint64_t helper_deregistrations; /* done after a use, by the helper thread */
	uint64_t evicted;                /* idle registrations that made room for others */
	uint64_t invalidated;            /* registrations whose mapping had changed */

	uint64_t pinned_bytes, pinned_regions; /* registered by Pinwheel now, but for plain uses */
	uint64_t peak_pinned_bytes;

	/* of the process in any case */
	uint64_t wait_ns;     /* spent by threads in asking the helper library, registrations included */
	uint64_t lost_events; /* uses that the helper thread has not heard of: their memory stays registered */
};

/*
 * Fills in *stats, of which size is set. Asks the helper library: microseconds.
 * What its counts are without it is zero.
 *
 * Returns 0; -EINVAL; -ENOMEM.
 */
int pinwheel_stats(struct pinwheel *pw, struct pinwheel_domain *domain, struct pinwheel_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
