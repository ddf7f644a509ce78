/* What a thread posts while another one moves its queue pair to ERR completes, whatever moment that is. */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

static __thread int unlocks; /* of this thread until the other one posts; 0: it does not */
static sem_t go, posted;
static struct end a, b;
static struct region l, r;

enum { WAITING = 5, LAST = 100, LARGE = 1 << 16 };

/* The device calls this one, too: the other thread posts when it has given up a lock. */
__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *m)
{
	static int (*unlock)(pthread_mutex_t *);
	int err;

	if (!unlock)
		*(void **)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	err = unlock(m);
	if (unlocks && !--unlocks) {
		struct timespec until;

		sem_post(&go);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 20000000; /* 20 ms: it may wait for another lock of this thread */
		until.tv_sec += until.tv_nsec / 1000000000, until.tv_nsec %= 1000000000;
		sem_timedwait(&posted, &until);
	}
	return err;
}

static void *post_one(void *unused)
{
	sem_wait(&go);
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, LAST, l, LARGE, r));
	sem_post(&posted);
	return unused;
}

/* Whether there were as many unlocks. */
static int flushed(int at)
{
	pthread_t thread;
	int during;

	a = b = (struct end){0};
	make_end(&a, IBV_QPT_RC), make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, LARGE, ALL_RIGHTS), r = region(b.pd, LARGE, ALL_RIGHTS);
	CHECK(!sem_init(&go, 0, 0) && !sem_init(&posted, 0, 0));
	CHECK(!pthread_create(&thread, NULL, post_one, NULL));
	for (uint64_t id = 0; id < WAITING; id++) /* for a receive that never comes */
		CHECK(!post(a.qp, IBV_WR_SEND, id, l, 1, (struct region){0}));
	unlocks = at;
	CHECK(!ibv_modify_qp(a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	if (!(during = !unlocks))
		sem_post(&go);
	unlocks = 0;
	CHECK(!pthread_join(thread, NULL));
	for (uint64_t id = 0; id < WAITING; id++)
		expect(a.cq, id, IBV_WC_WR_FLUSH_ERR);
	expect(a.cq, LAST, IBV_WC_WR_FLUSH_ERR);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
	return during;
}

int main(void)
{
	int at = 1;

	while (flushed(at))
		at++;
	CHECK(at > WAITING); /* each completion takes a lock */
	puts("ok    flushed");
	return 0;
}
