/* The block of memory that each thread of the program owns, and its questions to the server. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread.h"

__thread struct pw_thread *pw_self_ __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int have_key;

/* A thread has ended. The next new thread takes over its block with the Locals and the ring. */
static void disown(void *block)
{
	struct pw_thread *t = block;

	pw_self_ = NULL;
	t->depth = 0;
	__atomic_store_n(&t->owned, 0, __ATOMIC_RELEASE);
}

static void make_key(void) { have_key = !pthread_key_create(&key, disown); }

static uint64_t end_of_stack(void)
{
	pthread_attr_t a;
	void *low = NULL;
	size_t bytes = 0;

	if (pthread_getattr_np(pthread_self(), &a))
		return 0;
	pthread_attr_getstack(&a, &low, &bytes);
	pthread_attr_destroy(&a);
	return (uint64_t)low + bytes;
}

static struct pw_thread *reuse(void)
{
	for (struct pw_thread *t = __atomic_load_n(&pw.threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		uint32_t no = 0;

		if (__atomic_compare_exchange_n(&t->owned, &no, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return t;
	}
	return NULL;
}

struct pw_thread *pw_thread_new(void)
{
	static uint32_t count;
	struct pw_thread *t;

	pthread_once(&key_once, make_key);
	if (!have_key)
		return NULL;
	t = reuse();
	if (!t) {
		t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (t == MAP_FAILED)
			return NULL;
		t->owned = 1;
		t->index = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
		t->next = __atomic_load_n(&pw.threads, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&pw.threads, &t->next, t, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
	}
	t->stack_end = end_of_stack();
	pthread_setspecific(key, t);
	pw_self_ = t;
	return t;
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void pw_sleep_on(uint32_t *word, uint32_t value, unsigned ms)
{
	futex(word, FUTEX_WAIT, value, &(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l});
}

/* How long a thread waits for an answer. Registering very much memory takes seconds. Once nobody has answered, the next
 * questions have NEXT_TIMEOUT_S, or a program would wait as long again for each that its end has. On a busy machine, a
 * server that goes on takes more than a second to say so. */
#define ANSWER_TIMEOUT_S 30
#define NEXT_TIMEOUT_S 5

static int unanswered; /* atomic; the latest question that is over */

/* Withdraws a question that nobody has answered; -1, or 0 if the answer has come after all. The server
 * undoes what it still does for it. */
static int give_up(struct pw_mailbox *m)
{
	uint32_t state = PW_MAIL_ASKED;

	if (__atomic_compare_exchange_n(&m->state, &state, PW_MAIL_IDLE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	    (state == PW_MAIL_SERVING &&
	     __atomic_compare_exchange_n(&m->state, &state, PW_MAIL_ABANDONED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))) {
		uint32_t mode = PW_MANAGED;

		__atomic_store_n(&unanswered, 1, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(&pw.mode, &mode, PW_UNANSWERED, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			pw_warn("the helper library does not answer; going on with plain registration until it does");
		return -1;
	}
	return 0; /* DONE, after all */
}

void pw_ring_doorbell(void)
{
	__atomic_store_n(&pw.comm_cpu, sched_getcpu(), __ATOMIC_RELAXED);
	__atomic_fetch_add(&pw.doorbell, 1, __ATOMIC_SEQ_CST);
	futex(&pw.doorbell, FUTEX_WAKE, 1, NULL);
}

void pw_await_abandoned(struct pw_thread *t)
{
	uint64_t start = pw_clock_ns(CLOCK_MONOTONIC);

	while (__atomic_load_n(&t->mail.state, __ATOMIC_ACQUIRE) == PW_MAIL_ABANDONED &&
	       pw_clock_ns(CLOCK_MONOTONIC) - start < NEXT_TIMEOUT_S * 1000000000ull)
		pw_sleep_on(&t->mail.state, PW_MAIL_ABANDONED, 1000);
}

int pw_ask(struct pw_thread *t, uint32_t ask) { return pw_ask_within(t, ask, ANSWER_TIMEOUT_S); }

int pw_ask_within(struct pw_thread *t, uint32_t ask, unsigned seconds)
{
	struct pw_mailbox *m = &t->mail;
	uint32_t state;
	uint64_t start;

	if (!__atomic_load_n(&pw.serving, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != PW_MAIL_IDLE)
		return -1;
	if (__atomic_load_n(&unanswered, __ATOMIC_RELAXED) && seconds > NEXT_TIMEOUT_S)
		seconds = NEXT_TIMEOUT_S;
	start = pw_clock_ns(CLOCK_MONOTONIC);
	m->ask = ask;
	m->asked_ns = start;
	__atomic_store_n(&m->state, PW_MAIL_ASKED, __ATOMIC_RELEASE);
	pw_ring_doorbell();
	while ((state = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE)) != PW_MAIL_DONE) {
		if (pw_clock_ns(CLOCK_MONOTONIC) - start > (uint64_t)seconds * 1000000000u && give_up(m))
			return -1;
		pw_sleep_on(&m->state, state, 1000);
	}
	__atomic_store_n(&unanswered, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->state, PW_MAIL_IDLE, __ATOMIC_RELAXED);
	pw_add(&t->wait_ns, pw_clock_ns(CLOCK_MONOTONIC) - start);
	return 0;
}
