/* The block of memory that each thread of the program owns, and its questions to the server. */
#ifndef PINWHEEL_THREAD_H
#define PINWHEEL_THREAD_H

#include "process.h"

/* Acquire: Go has filled in the Local's memory before the pointer to it. */
static inline struct pwt_local *pw_local(const struct pw_thread *t, uint32_t domain)
{
	return __atomic_load_n(&t->local[domain], __ATOMIC_ACQUIRE);
}

/* Adds to a count that only this thread writes and any thread may read. */
static inline void pw_add(uint64_t *count, uint64_t n) { __atomic_store_n(count, *count + n, __ATOMIC_RELAXED); }

struct pw_thread *pw_thread_new(void); /* NULL if there is no memory */
extern __thread struct pw_thread *pw_self_ __attribute__((tls_model("initial-exec")));
void pw_sleep_on(uint32_t *word, uint32_t value, unsigned ms); /* while a futex has this value, and no longer than that */
void pw_ring_doorbell(void); /* has the server look at mailboxes and grants */
void pw_await_abandoned(struct pw_thread *t); /* waits until a question that was given up is over, for seconds at most */
int pw_ask(struct pw_thread *t, uint32_t ask); /* asks the server what t->mail says; -1 if nobody answers, else 0 */
int pw_ask_within(struct pw_thread *t, uint32_t ask, unsigned seconds); /* likewise; waits no longer than that */

static inline struct pw_thread *pw_self(void)
{
	return pw_likely(pw_self_ != NULL) ? pw_self_ : pw_thread_new();
}

#endif
