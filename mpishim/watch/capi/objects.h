/* What C and Go share of the objects of pinwheel_watch.h. */
#ifndef PINWHEEL_WATCH_OBJECTS_H
#define PINWHEEL_WATCH_OBJECTS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "pinwheel_watch.h"

/* States of a range. Changed is for good. */
enum {
	WATCH_NEW,      /* not registered yet */
	WATCH_NOTIFIED, /* valid, as long as the word of the watch is what was seen */
	WATCH_VERIFIED, /* to be asked about at each hit */
	WATCH_CHANGED,
};

struct pinwheel_watch {
	const uint64_t *word; /* moves before anyone can rely on a change; atomic */
	uint64_t seen;        /* atomic: the states are right up to this value of the word */
	uint32_t waiting;     /* atomic: changed ranges that no drain has returned */
	int is_blind;         /* all subscriptions fail */
	uintptr_t handle;     /* runtime/cgo.Handle */
};

struct pinwheel_watch_range {
	pinwheel_watch *watch;
	void *entry;    /* of whoever has subscribed */
	uint32_t state; /* atomic */
	uintptr_t handle;
};

static inline sigset_t without_signals(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	return before;
}

/* A call of Go, whose code has small stacks: no handler of the program may run there. */
#define IN_GO(call) \
	({ \
		sigset_t before_ = without_signals(); \
		int status_ = call; \
		pthread_sigmask(SIG_SETMASK, &before_, NULL); \
		status_; \
	})

/* monitor.c: the life of a thread that Go starts, on which all signals are blocked. */
void watch_tell(void *session);

#endif
