/*
 * The transport of docs/tutorial-c.md: messages between two buffers of one process, over
 * a device that is a table in memory. The device does what an adapter does as far as
 * registration is concerned: it pins memory, and moves no byte that isn't registered.
 * transport.c is the same over libibverbs.
 *
 *	cc -O2 -fno-omit-frame-pointer $(pkg-config --cflags pinwheel) tutorial.c $(pkg-config --libs pinwheel) -lpthread
 *	./tutorial [STEPS [COMPUTE_MS]]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pinwheel.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void die(const char *what, int error)
{
	fprintf(stderr, "tutorial: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

/* ---- the device ---- */

#define SLOTS 64

struct registration {
	char *addr;
	size_t len;
	unsigned access;
	uint32_t key; /* 0: the slot is free */
};

struct device {
	pthread_mutex_t lock;
	struct registration slot[SLOTS];
	uint32_t last_key;
	size_t bytes; /* registered now */
};

/* Registers memory: the kernel keeps its pages, and the device knows them by a key. */
static struct registration *device_register(struct device *d, void *addr, size_t len, unsigned access)
{
	struct registration *r = NULL;

	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < SLOTS && !r; i++)
		if (!d->slot[i].key)
			r = &d->slot[i];
	if (!r)
		errno = ENOSPC;
	else if (mlock(addr, len))
		r = NULL;
	if (r) {
		*r = (struct registration){addr, len, access, ++d->last_key};
		d->bytes += len;
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

static int device_deregister(struct device *d, struct registration *r)
{
	pthread_mutex_lock(&d->lock);
	munlock(r->addr, r->len); /* fails if the program has unmapped it: then it is not locked */
	d->bytes -= r->len;
	r->key = 0;
	pthread_mutex_unlock(&d->lock);
	return 0;
}

static int covers(struct device *d, uint32_t key, const char *addr, size_t len, unsigned access)
{
	for (int i = 0; i < SLOTS; i++) {
		struct registration *r = &d->slot[i];

		if (key && r->key == key)
			return addr >= r->addr && addr + len <= r->addr + r->len && (r->access & access) == access;
	}
	return 0;
}

/* Moves bytes, as an RDMA write does: both keys must be those of registrations that have them. */
static int device_write(struct device *d, char *to, uint32_t rkey, const char *from, uint32_t lkey, size_t len)
{
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (covers(d, lkey, from, len, 0) && covers(d, rkey, to, len, PINWHEEL_REMOTE_WRITE))
		memcpy(to, from, len);
	else
		rc = -EACCES;
	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* ---- what Pinwheel needs of it ---- */

static int reg(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	struct registration *r = device_register(arg, addr, len, access);

	if (!r)
		return -errno;
	*region = (struct pinwheel_region){.handle = r, .lkey = r->key, .rkey = r->key};
	return 0;
}

static int dereg(void *arg, void *handle)
{
	return device_deregister(arg, handle);
}

static const struct pinwheel_ops ops = {.size = sizeof ops, .reg = reg, .dereg = dereg};

/* ---- the transport ---- */

struct transport {
	struct device device;
	struct pinwheel *pw;
	struct pinwheel_domain *domain;
};

static void transport_open(struct transport *t)
{
	const struct pinwheel_options options = {.size = sizeof options, .name = "tutorial"};
	int rc = pinwheel_init(&options, &t->pw);

	if (!rc)
		rc = pinwheel_domain_open(t->pw, &ops, &t->device, &t->domain);
	if (rc)
		die("pinwheel", rc);
}

static void transport_close(struct transport *t)
{
	int rc = pinwheel_domain_close(t->domain);

	if (!rc)
		rc = pinwheel_fini(t->pw);
	if (rc)
		die("closing pinwheel", rc);
}

/* Sends one message: acquire, transfer, release. */
static void send_message(struct transport *t, char *to, const char *from, size_t bytes)
{
	struct pinwheel_use source, target;
	int rc = pinwheel_acquire(t->domain, to, bytes, PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_WRITE, 0, &target);

	if (rc)
		die("acquiring the target", rc);
	rc = pinwheel_acquire(t->domain, from, bytes, 0, 0, &source);
	if (rc)
		die("acquiring the source", rc);
	rc = device_write(&t->device, to, target.rkey, from, source.lkey, bytes);
	if (rc)
		die("the transfer", rc);
	pinwheel_release(&source);
	pinwheel_release(&target);
}

/* ---- a program over it ---- */

#define BUFFERS 6

static char *page_aligned(size_t bytes)
{
	void *p;

	if (posix_memalign(&p, 4096, bytes))
		die("posix_memalign", ENOMEM);
	return p;
}

static void compute(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static size_t registered(struct device *d)
{
	size_t bytes;

	pthread_mutex_lock(&d->lock);
	bytes = d->bytes;
	pthread_mutex_unlock(&d->lock);
	return bytes;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 100, compute_ms = argc > 2 ? atoi(argv[2]) : 20, wrong = 0;
	static struct transport t = {.device.lock = PTHREAD_MUTEX_INITIALIZER};
	char *out[BUFFERS], *in[BUFFERS];
	size_t total = 0;
	double sum = 0;
	struct pinwheel_stats s = {.size = sizeof s};

	transport_open(&t);
	for (int b = 0; b < BUFFERS; b++) {
		size_t bytes = ((size_t)64 << 10) * (size_t)(b + 1);

		out[b] = page_aligned(bytes);
		in[b] = page_aligned(bytes);
		total += 2 * bytes;
	}
	for (int step = 0; step < steps; step++) {
		int b = step % BUFFERS;
		size_t bytes = ((size_t)64 << 10) * (size_t)(b + 1);

		memset(out[b], step, bytes);
		send_message(&t, in[b], out[b], bytes);
		wrong += memcmp(in[b], out[b], bytes) != 0;
		compute(compute_ms);
		sum += (double)registered(&t.device);
	}
	if (pinwheel_stats(t.pw, t.domain, &s))
		die("pinwheel_stats", EINVAL);
	printf("%d messages, %s\n", steps, wrong ? "DATA WRONG" : "data right");
	printf("uses: %lu hits, %lu waited, %lu first, %lu late, %lu plain\n", s.hits, s.waited, s.first, s.late, s.plain);
	printf("helper: %lu registrations, %lu deregistrations\n", s.helper_registrations, s.helper_deregistrations);
	printf("registered after computing: %.2f of %.2f MiB on average\n", sum / steps / (1 << 20), (double)total / (1 << 20));
	transport_close(&t);
	printf("registered at the end: %zu bytes\n", registered(&t.device));
	return wrong != 0;
}
