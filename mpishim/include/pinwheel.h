/*
 * pinwheel.h - just-in-time memory registration for RDMA transports.
 *
 * A transport that links Pinwheel acquires memory before each large transfer
 * (pinwheel_acquire) and releases it afterwards (pinwheel_release). Between the two
 * calls the memory is registered. After the release a helper thread on an idle core
 * deregisters it. The helper predicts the next use and registers the memory again just
 * before it. So only memory that is needed now is registered, and communication
 * seldom waits for a registration.
 *
 * The transport passes two callbacks that register memory for each domain: a protection
 * domain, or whatever registrations belong to. <pinwheel_verbs.h> has those for plain
 * libibverbs.
 *
 * Functions return errors as negative errno values; strerror(3) names them. The value of
 * errno is undefined after a call. Sizes are in bytes, times in nanoseconds. Any thread
 * may call any function at any time, unless its comment says otherwise. A callback or a
 * signal handler must not call any.
 *
 * A failure of Pinwheel does not fail the transport. Pinwheel falls back to plain
 * registration if the helper library is missing, if it cannot notice that mappings change,
 * with PINWHEEL_DISABLE=y, in the child of a fork, and after an internal fault. Then every acquire
 * registers through the callback in its own thread, and every release deregisters. One
 * line on standard error says so, unless the user has asked for it. pinwheel(1)
 * describes the settings, which are the environment variables PINWHEEL_*.
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

/* The version of this interface, as in the soname. */
#define PINWHEEL_API_VERSION 0

struct pinwheel;        /* the initialised library */
struct pinwheel_domain; /* registrations belong to one */

/*
 * Rights to registered memory, numbered as enum ibv_access_flags. Local reading is
 * implied. The callback gets other bits unchanged. Memory that is registered with them
 * is not kept after the use.
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
 * Options of pinwheel_init. Set size to sizeof(struct pinwheel_options) and every field
 * that is not known to zero.
 */
struct pinwheel_options {
	size_t size;
	const char *name; /* of the transport, for the report; copied, up to 63 bytes */
	/*
	 * The rank of this process in its job, and the number of ranks; 0 ranks if there is
	 * no job. Only rank 0 prints messages that concern the whole job.
	 */
	int rank, ranks;
};

/*
 * The first call loads the helper library and starts its threads, which may take some
 * 100 ms. Further calls only count. Signal dispositions and masks, limits, and the
 * affinity of the caller do not change.
 *
 * options may be NULL. The options of the first call hold until the last pinwheel_fini.
 *
 * Returns 0 and *pw, which is valid until as many calls of pinwheel_fini; -EINVAL.
 */
int pinwheel_init(const struct pinwheel_options *options, struct pinwheel **pw);

/*
 * Undoes one pinwheel_init. The last call ends the helper thread and writes the report
 * that PINWHEEL_STATS asks for. The libraries stay loaded, and pinwheel_init may be
 * called again.
 *
 * Returns 0; -EBUSY if this is the last call and a domain is open, and nothing has happened; -EINVAL.
 */
int pinwheel_fini(struct pinwheel *pw);

/* A registration that the callback has made. */
struct pinwheel_region {
	void *handle; /* identifies it for the transport, such as a struct ibv_mr * */
	uint32_t lkey, rkey;
};

/*
 * The callbacks of a domain. Threads that acquire and release call them, and so do threads
 * of Pinwheel, several at a time. A callback must not call this interface, and must
 * not wait for a thread that does.
 *
 * reg registers len bytes from addr. These are whole pages and may be more than the
 * transport acquires, unless the registration is for a single use. The keys must be valid
 * at the addresses of the memory itself. reg fills in *region and returns 0, or returns a
 * negative errno. After -ENOMEM, -EAGAIN or -ENOSPC Pinwheel deregisters idle memory and
 * calls reg again. arg is that of pinwheel_domain_open.
 *
 * dereg ends a registration and returns 0 or a negative errno. After -EBUSY Pinwheel calls
 * it again, a few times. After any other error Pinwheel gives the registration up and
 * counts it as pinned for as long as the domain is open. If the registration was for a
 * single use, pinwheel_release returns the error, and dereg is not called again.
 */
struct pinwheel_ops {
	size_t size; /* sizeof(struct pinwheel_ops) */
	int (*reg)(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region);
	int (*dereg)(void *arg, void *handle);
};

/*
 * Opens a domain. ops is copied. arg must stay valid until the domain is closed.
 * Pinwheel manages sixteen domains at a time. Further domains register for each use, and
 * one line on standard error says so.
 *
 * Returns 0 and *domain, which the caller must close with pinwheel_domain_close; -EINVAL; -ENOMEM.
 */
int pinwheel_domain_open(struct pinwheel *pw, const struct pinwheel_ops *ops, void *arg, struct pinwheel_domain **domain);

/*
 * Closes a domain. It deregisters all idle memory of the domain before it returns. No
 * other call with this domain may be under way or follow, except pinwheel_release before
 * this returns 0.
 *
 * Returns 0: the domain is gone, Pinwheel no longer calls its callbacks, and the
 * protection domain can be destroyed. -EBUSY: uses are not released yet. From now on an
 * acquire fails with -ESHUTDOWN and each release deregisters; call this again after the
 * last release. -ETIMEDOUT: the helper library has died and its registrations stay; the
 * domain is gone. -EINVAL.
 */
int pinwheel_domain_close(struct pinwheel_domain *domain);

/*
 * One use of registered memory. A transport has one in each of its requests.
 * pinwheel_acquire fills it in. The transport must not copy, move or free it before
 * pinwheel_release.
 */
struct pinwheel_use {
	uint32_t lkey, rkey; /* keys of the registration, valid at the addresses of the memory */
	void *handle;        /* handle of the registration, which other uses may share */
	uint64_t opaque[18];
};

/*
 * Makes memory usable for a transfer. It returns when len bytes from addr are registered
 * with the rights access. They stay registered until pinwheel_release(use), even if they
 * are unmapped meanwhile. While memory is not acquired, the transport may change or unmap
 * its mapping without a call to Pinwheel.
 *
 * site identifies the origin of the transfer, so that its repetition can be recognised. It
 * is any number that is the same whenever the program does the same, such as one for each
 * kind of transfer and its peer. If it is 0, Pinwheel takes the return addresses on the
 * stack, and the callers must have frame pointers. Threads that run on stacks that they
 * make themselves, such as coroutines, must pass a number.
 *
 * Most calls are hits. A hit makes no system call, allocates nothing, takes no lock and
 * waits for nobody. A miss asks a thread of Pinwheel, or registers in this thread.
 * Uses of fewer bytes than PINWHEEL_THRESHOLD (16 KiB) are served but not predicted, so
 * their memory stays registered. It is usually better to copy such messages through memory
 * that is registered anyhow.
 *
 * Returns 0 and *use, to be released once. -ENOMEM: memory in use leaves no room below the
 * limits; copy the message, or wait for a release. The error of the callback, if
 * making room did not help. -ESHUTDOWN: the domain is closing. -EINVAL: len is 0, or the
 * range ends beyond the address space.
 */
int pinwheel_acquire(struct pinwheel_domain *domain, const void *addr, size_t len, unsigned access, uint64_t site,
		     struct pinwheel_use *use);

/*
 * Acquires memory only if it is registered already. A transport can use it to choose
 * between zero-copy and a copy. Success costs as much as a hit. Before it fails it asks the
 * helper library, which takes microseconds.
 *
 * Returns 0 and *use; -ENOENT if the memory, or a part of it, is not registered
 * with these rights; -EINVAL.
 */
int pinwheel_try_acquire(struct pinwheel_domain *domain, const void *addr, size_t len, unsigned access, uint64_t site,
			 struct pinwheel_use *use);

/*
 * Ends a use after its transfer has completed. Any thread may call it. Afterwards *use
 * holds nothing.
 *
 * Returns 0; -EINVAL if use holds nothing; the error of dereg, if the registration was for
 * this use alone; -ENOMEM if there is no memory for the first call of a thread, and
 * nothing has happened.
 */
int pinwheel_release(struct pinwheel_use *use);

/*
 * Reports whether len bytes from addr are registered with the rights access at this
 * moment. A moment later the answer may be another. It registers nothing. If the memory is
 * registered, this counts as a hit.
 *
 * Returns 1 or 0; -EINVAL.
 */
int pinwheel_is_registered(struct pinwheel_domain *domain, const void *addr, size_t len, unsigned access);

/* Options of pinwheel_prepare. Set size to sizeof(struct pinwheel_prepare_options). */
struct pinwheel_prepare_options {
	size_t size;
	/*
	 * How many threads provide pages, at most as many as the caller may use processors. 0 stands for one in
	 * place of the caller, and one on each other core that is idle.
	 */
	unsigned threads;
	/*
	 * Called in the thread of the caller, some twenty times a second, with the number of bytes whose pages are there so
	 * far. If it returns another value than 0, pinwheel_prepare fails with -ECANCELED soon. It must not call
	 * this interface. May be NULL.
	 */
	int (*progress)(void *arg, uint64_t done);
	void *arg; /* for progress */
};

/*
 * Registers len bytes from addr ahead of their first use: a large pool, for which that takes long. It first provides
 * the pages with several threads, which a registration does with one, and then makes one registration, which stays as
 * after a use. What the memory contains does not change, and other threads may use it meanwhile; a
 * pinwheel_acquire waits. The caller must not unmap it before this returns.
 *
 * Limits are checked before anything is touched: RLIMIT_MEMLOCK, those of pinwheel_limits, and PINWHEEL_BUDGET.
 * If it fails, nothing more is registered than before. A call of reg can't be cut short: if progress asks for an end
 * meanwhile, the registration is ended afterwards. options may be NULL.
 *
 * Returns 0, also where each use registers for itself and there is nothing to prepare: pinwheel_is_registered tells.
 * -ENOMEM: it exceeds a limit, memory in use leaves no room, or the machine has no memory left. -EFAULT: some of it is
 * not mapped, or read-only though access has a right to write. -ECANCELED: progress asked for it. -ESHUTDOWN; -EINVAL;
 * the error of reg.
 */
int pinwheel_prepare(struct pinwheel_domain *domain, void *addr, size_t len, unsigned access,
		     const struct pinwheel_prepare_options *options);

/* Limits of the memory that is registered at a time; PINWHEEL_UNLIMITED for none. */
struct pinwheel_limits {
	size_t size;      /* sizeof(struct pinwheel_limits) */
	uint64_t bytes;   /* of whole pages; a page in two registrations counts twice */
	uint64_t regions; /* registrations */
};

/*
 * Limits the memory that Pinwheel keeps registered, in one domain, or in the process if
 * domain is NULL. Pinwheel deregisters idle memory until the rest fits. Memory in use stays
 * registered. An acquire that would exceed the limits when nothing is idle fails with
 * -ENOMEM. The limit of the process never exceeds PINWHEEL_BUDGET, and lasts until the last
 * pinwheel_fini.
 *
 * Returns 0; -EINVAL; an error of dereg.
 */
int pinwheel_limits(struct pinwheel *pw, struct pinwheel_domain *domain, const struct pinwheel_limits *limits);

/*
 * Deregisters all idle memory, in one domain, or in all if domain is NULL. Call it before
 * a fork, for instance, or when memory is needed elsewhere.
 *
 * Returns the number of registrations that it has ended; -EINVAL; an error of dereg.
 */
int pinwheel_clean(struct pinwheel *pw, struct pinwheel_domain *domain);

/*
 * Counts since the domain was opened, or of all domains since the first pinwheel_init.
 * Later versions may add fields; size tells which there are.
 */
struct pinwheel_stats {
	size_t size;     /* sizeof(struct pinwheel_stats) */
	uint64_t hits;   /* uses that found their memory registered */
	uint64_t waited; /* uses that waited for another thread to register it */
	uint64_t first;  /* uses that registered memory for the first time */
	uint64_t late;   /* uses that had to register memory again */
	uint64_t plain;  /* uses that registered for themselves alone, in the thread of the caller */
	uint64_t failed; /* registrations that failed for good */

	uint64_t helper_registrations;   /* done ahead of a use, by the helper thread */
	uint64_t helper_deregistrations; /* done after a use, by the helper thread */
	uint64_t evicted;                /* idle registrations that made room for others */
	uint64_t invalidated;            /* registrations whose mapping had changed */

	uint64_t pinned_bytes, pinned_regions; /* registered by Pinwheel now, without plain uses */
	uint64_t peak_pinned_bytes;

	/* always of the whole process */
	uint64_t wait_ns;     /* time that threads waited for the helper library, registrations included */
	uint64_t lost_events; /* uses that were never reported to the helper thread; their memory stays registered */
};

/*
 * Fills in *stats, whose size the caller has set. It asks the helper library, which takes
 * microseconds. If that is missing, its counts are zero.
 *
 * Returns 0; -EINVAL; -ENOMEM.
 */
int pinwheel_stats(struct pinwheel *pw, struct pinwheel_domain *domain, struct pinwheel_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
