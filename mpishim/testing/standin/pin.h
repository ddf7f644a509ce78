/*
 * A transport's registration without a device: mlock(2). It counts, and aborts the
 * program if Pinwheel deregisters what is in use, or twice. mlock does not nest, so
 * that a page in two registrations is locked until the first of them ends: keep apart what must be locked.
 */
#ifndef PIN_H
#define PIN_H

#include <errno.h>
#include <pinwheel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PIN_MAX 4096

struct pin {
	void *addr;
	size_t len;
	unsigned users; /* that the program knows of */
	unsigned live;
};

static struct {
	pthread_mutex_t lock; /* protects the slots and what is below; not pin.users */
	struct pin pin[PIN_MAX];
	unsigned keys;
	long regs, deregs, live, most;
	long room;   /* registrations that fit; 0: any number */
	int failure; /* what reg fails with */
} pins = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int pin_refuses(void)
{
	if (pins.failure)
		return pins.failure;
	return pins.room && pins.live >= pins.room ? -ENOMEM : 0;
}

static int pin_reg(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	int rc;

	(void)arg, (void)access;
	pthread_mutex_lock(&pins.lock);
	rc = pin_refuses();
	if (!rc && mlock(addr, len))
		rc = -errno;
	for (unsigned i = 0; !rc && i <= PIN_MAX; i++) {
		struct pin *p = &pins.pin[i % PIN_MAX];

		if (i == PIN_MAX)
			rc = -ENOSPC;
		if (p->live || i == PIN_MAX)
			continue;
		*p = (struct pin){.addr = addr, .len = len, .live = 1};
		*region = (struct pinwheel_region){.handle = p, .lkey = ++pins.keys, .rkey = ~pins.keys};
		pins.regs++;
		if (++pins.live > pins.most)
			pins.most = pins.live;
		break;
	}
	pthread_mutex_unlock(&pins.lock);
	return rc;
}

static int pin_dereg(void *arg, void *handle)
{
	struct pin *p = handle;

	(void)arg;
	pthread_mutex_lock(&pins.lock);
	if (p < pins.pin || p >= pins.pin + PIN_MAX || !p->live || __atomic_load_n(&p->users, __ATOMIC_SEQ_CST)) {
		fprintf(stderr, "deregistered while in use, or twice\n");
		abort();
	}
	munlock(p->addr, p->len); /* fails if it is unmapped: then it is not locked */
	p->live = 0;
	pins.live--;
	pins.deregs++;
	pthread_mutex_unlock(&pins.lock);
	return 0;
}

static const struct pinwheel_ops pin_ops = {.size = sizeof pin_ops, .reg = pin_reg, .dereg = pin_dereg};

/* Marks a use as such, for pin_dereg. */
static inline void pin_begin(const struct pinwheel_use *u)
{
	__atomic_fetch_add(&((struct pin *)u->handle)->users, 1, __ATOMIC_SEQ_CST);
}
static inline void pin_end(const struct pinwheel_use *u)
{
	__atomic_fetch_sub(&((struct pin *)u->handle)->users, 1, __ATOMIC_SEQ_CST);
}

#endif
