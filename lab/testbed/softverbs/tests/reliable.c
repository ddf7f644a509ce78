/* RC queue pairs within a process: every operation, the errors of the specification, SRQ, channels, events. */
#include "check.h"
#include <pthread.h>

static int same(const char *p, char c, size_t n) { return p[0] == c && !memcmp(p, p + 1, n - 1); }

static void operations(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;
	struct ibv_wc wc;
	const uint32_t n = 3 << 20;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, n, ALL_RIGHTS), r = region(b.pd, n, ALL_RIGHTS);
	memset(l.p, 'w', n);
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, l, n, r));
	expect(a.cq, 1, IBV_WC_SUCCESS);
	CHECK(same(r.p, 'w', n));
	memset(r.p, 'r', n);
	CHECK(!post(a.qp, IBV_WR_RDMA_READ, 2, l, n, r));
	expect(a.cq, 2, IBV_WC_SUCCESS);
	CHECK(same(l.p, 'r', n));
	memset(l.p, 's', n);
	CHECK(!post_receive(&b, 3, r, n));
	CHECK(!post(a.qp, IBV_WR_SEND_WITH_IMM, 4, l, n, (struct region){0}));
	expect(a.cq, 4, IBV_WC_SUCCESS);
	wc = next_wc(b.cq);
	CHECK(wc.wr_id == 3 && wc.byte_len == n && wc.opcode == IBV_WC_RECV && wc.wc_flags & IBV_WC_WITH_IMM &&
	      wc.imm_data == 77);
	CHECK(same(r.p, 's', n) && wc.src_qp == a.qp->qp_num);
	memset(l.p, 'i', n);
	CHECK(!post_receive(&b, 5, r, 0));
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE_WITH_IMM, 6, l, 100, r));
	wc = next_wc(b.cq);
	CHECK(wc.wr_id == 5 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 100 && same(r.p, 'i', 100) &&
	      r.p[100] == 's');
	expect(a.cq, 6, IBV_WC_SUCCESS);
	end_end(&(struct end){.qp = a.qp, .cq = a.cq, .ch = a.ch, .pd = (ibv_dereg_mr(l.mr), a.pd), .ctx = a.ctx});
	ibv_dereg_mr(r.mr);
	end_end(&b);
}

/* While the device's thread moves data, the program goes on posting; what it posts comes later, however small it is. */
static void posts_while_data_moves(void)
{
	struct end a = {0}, b = {0};
	struct region l, r, small;
	const uint32_t n = 16 << 20;
	int beside = 0;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, n, ALL_RIGHTS), r = region(b.pd, n, ALL_RIGHTS), small = region(a.pd, 4096, ALL_RIGHTS);
	for (int i = 0; i < 2000 && !beside; i++) { /* on a busy machine, few posts meet a move under way */
		const char c = (char)(1 + i % 20);

		memset(l.p, c, n);
		memset(small.p, 100 + c, 4096);
		CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, l, n, r));
		while (*(volatile char *)r.p != c)
			;
		CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 2, small, 8, (struct region){r.p + n - 8, r.mr}));
		beside = *(volatile char *)(r.p + n - 9) != c;
		expect(a.cq, 1, IBV_WC_SUCCESS);
		expect(a.cq, 2, IBV_WC_SUCCESS);
		CHECK(same(r.p, c, n - 8) && same(r.p + n - 8, (char)(100 + c), 8));
	}
	CHECK(beside);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr), ibv_dereg_mr(small.mr);
	end_end(&a), end_end(&b);
}

static void atomics(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;
	struct ibv_sge s;
	struct ibv_send_wr *bad, w = {.sg_list = &s, .num_sge = 1};

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, 4096, ALL_RIGHTS), r = region(b.pd, 4096, ALL_RIGHTS);
	s = (struct ibv_sge){(uintptr_t)l.p, 8, l.mr->lkey};
	*(uint64_t *)r.p = 40;
	w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, w.wr.atomic.remote_addr = (uintptr_t)r.p, w.wr.atomic.rkey = r.mr->rkey;
	w.wr.atomic.compare_add = 2;
	CHECK(!ibv_post_send(a.qp, &w, &bad));
	expect(a.cq, 0, IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)l.p == 40 && *(uint64_t *)r.p == 42);
	w.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, w.wr.atomic.compare_add = 42, w.wr.atomic.swap = 7;
	CHECK(!ibv_post_send(a.qp, &w, &bad));
	expect(a.cq, 0, IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)l.p == 42 && *(uint64_t *)r.p == 7);
	w.wr.atomic.compare_add = 42, w.wr.atomic.swap = 8;
	CHECK(!ibv_post_send(a.qp, &w, &bad));
	expect(a.cq, 0, IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)l.p == 7 && *(uint64_t *)r.p == 7);
	w.wr.atomic.remote_addr++;
	CHECK(!ibv_post_send(a.qp, &w, &bad));
	expect(a.cq, 0, IBV_WC_REM_INV_REQ_ERR);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

/* What a request with a fault gives; a fresh connection each time. */
enum fault { RKEY, RKEY_GONE, RKEY_RIGHTS, QP_RIGHTS, BOUNDS, OTHER_PD, LKEY, LKEY_GONE, LKEY_RIGHTS, SHORT,
	RECEIVE_KEY };

static void error_of(enum fault f, enum ibv_wr_opcode op, enum ibv_wc_status want, enum ibv_wc_status far)
{
	struct end a = {0}, b = {0};
	struct region l, r, x;
	struct ibv_mr bad, *keep;
	struct ibv_pd *other;
	struct ibv_async_event e;
	struct pollfd p;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	CHECK((other = ibv_alloc_pd(b.ctx)));
	connect_ends(&a, &b);
	l = region(a.pd, 8192, f == LKEY_RIGHTS ? 0 : ALL_RIGHTS);
	r = region(f == OTHER_PD ? other : b.pd, 8192, f == RKEY_RIGHTS ? IBV_ACCESS_LOCAL_WRITE : ALL_RIGHTS);
	x = r;
	if (f == RKEY)
		bad = *r.mr, bad.rkey ^= 3, x.mr = &bad;
	if (f == BOUNDS)
		x.p += 4097;
	if (f == QP_RIGHTS)
		CHECK(!ibv_modify_qp(b.qp, &(struct ibv_qp_attr){.qp_access_flags = 0}, IBV_QP_ACCESS_FLAGS));
	if (f == RKEY_GONE) {
		bad = *r.mr, x.mr = &bad;
		CHECK(!ibv_dereg_mr(r.mr));
		r.mr = NULL;
	}
	if (f == SHORT)
		CHECK(!post_receive(&b, 20, r, 100));
	if (f == RECEIVE_KEY) {
		bad = *r.mr, bad.lkey ^= 5;
		CHECK(!post_receive(&b, 20, (struct region){r.p, &bad}, 4096));
	}
	memset(l.p, 1, 8192 * (f != LKEY_RIGHTS));
	keep = l.mr;
	if (f == LKEY || f == LKEY_GONE) {
		bad = *l.mr, l.mr = &bad;
		if (f == LKEY)
			bad.lkey ^= 9;
		if (f == LKEY_GONE) {
			CHECK(!ibv_dereg_mr(keep));
			keep = NULL;
		}
	}
	CHECK(!post(a.qp, op, 1, l, 4096, x));
	CHECK(!post(a.qp, op, 2, l, 4096, x));
	expect(a.cq, 1, want);
	expect(a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_query_qp(a.qp, &(struct ibv_qp_attr){0}, 0, NULL) == 0);
	if (far)
		expect(b.cq, 20, far);
	if (want == IBV_WC_REM_ACCESS_ERR) {
		CHECK(!ibv_get_async_event(b.ctx, &e));
		CHECK(e.event_type == IBV_EVENT_QP_ACCESS_ERR && e.element.qp == b.qp);
		ibv_ack_async_event(&e);
	}
	p = (struct pollfd){a.ctx->async_fd, POLLIN, 0};
	CHECK(poll(&p, 1, 0) == 0);
	if (r.mr)
		ibv_dereg_mr(r.mr);
	if (keep)
		ibv_dereg_mr(keep);
	CHECK(!ibv_dealloc_pd(other));
	end_end(&a), end_end(&b);
}

static void errors(void)
{
	error_of(RKEY, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(RKEY, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(RKEY_GONE, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(RKEY_RIGHTS, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(RKEY_RIGHTS, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(QP_RIGHTS, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(BOUNDS, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(OTHER_PD, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0);
	error_of(LKEY, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR, 0);
	error_of(LKEY_GONE, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR, 0);
	error_of(LKEY_RIGHTS, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR, 0);
	error_of(SHORT, IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
	error_of(RECEIVE_KEY, IBV_WR_SEND, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A receiver that is not ready, and one that is not there. */
static void retries(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, init = {.qp_state = IBV_QPS_RTR};
	struct ibv_cq *cq;
	void *ctx;
	double t;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	l = region(a.pd, 4096, ALL_RIGHTS), r = region(b.pd, 4096, ALL_RIGHTS);
	CHECK(ibv_modify_qp(a.qp, &init, IBV_QP_STATE) == EINVAL);
	connect_ends(&a, &b);
	CHECK(!ibv_req_notify_cq(a.cq, 0));
	CHECK(!post(a.qp, IBV_WR_SEND, 1, l, 10, (struct region){0}));
	usleep(5000);
	CHECK(!post_receive(&b, 2, r, 10));
	/* Nobody polls: the device goes on by itself. */
	CHECK(!ibv_get_cq_event(a.ch, &cq, &ctx) && cq == a.cq && ctx == &a);
	ibv_ack_cq_events(cq, 1);
	expect(a.cq, 1, IBV_WC_SUCCESS);
	expect(b.cq, 2, IBV_WC_SUCCESS);

	CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE));
	to_init(a.qp);
	to_rts(a.qp, b.qp->qp_num, 14, 1, 2); /* two retries */
	t = seconds();
	CHECK(!post(a.qp, IBV_WR_SEND, 3, l, 10, (struct region){0}));
	expect(a.cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(seconds() - t >= 2 * 0.00064);

	CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE));
	CHECK(!ibv_modify_qp(b.qp, &reset, IBV_QP_STATE));
	to_init(a.qp);
	to_rts(a.qp, b.qp->qp_num, 14, 1, 2);
	t = seconds();
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 4, l, 10, r));
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 5, l, 10, r));
	expect(a.cq, 4, IBV_WC_RETRY_EXC_ERR);
	expect(a.cq, 5, IBV_WC_WR_FLUSH_ERR);
	t = seconds() - t;
	CHECK(t >= 2 * 0.067 && t < 5); /* timeout 14: 67 ms */
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

static void shared_receives(void)
{
	struct end a = {0}, b = {.ctx = open_device()};
	struct ibv_srq_init_attr i = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_async_event e;
	struct region l, r;

	CHECK((b.pd = ibv_alloc_pd(b.ctx)));
	CHECK((b.srq = ibv_create_srq(b.pd, &i)));
	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, 4096, ALL_RIGHTS), r = region(b.pd, 4096, ALL_RIGHTS);
	for (uint64_t k = 0; k < 3; k++)
		CHECK(!post_receive(&b, k, r, 100));
	CHECK(!ibv_modify_srq(b.srq, &(struct ibv_srq_attr){.srq_limit = 2}, IBV_SRQ_LIMIT));
	for (uint64_t k = 0; k < 2; k++) {
		CHECK(!post(a.qp, IBV_WR_SEND, 10 + k, l, 100, (struct region){0}));
		expect(a.cq, 10 + k, IBV_WC_SUCCESS);
		expect(b.cq, k, IBV_WC_SUCCESS);
	}
	CHECK(!ibv_get_async_event(b.ctx, &e) && e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == b.srq);
	ibv_ack_async_event(&e);
	CHECK(!ibv_modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	CHECK(!ibv_get_async_event(b.ctx, &e) && e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && e.element.qp == b.qp);
	ibv_ack_async_event(&e);
	CHECK(ibv_destroy_cq(b.cq) == EBUSY && ibv_destroy_srq(b.srq) == EBUSY);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

/* A number that is used again leads nobody to the new queue pair. */
static void numbers(void)
{
	struct end a = {0}, b = {0}, c = {0};
	struct region l, r;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, 4096, ALL_RIGHTS);
	end_end(&b);
	make_end(&c, IBV_QPT_RC);
	r = region(c.pd, 4096, ALL_RIGHTS);
	to_init(c.qp);
	to_rts(c.qp, a.qp->qp_num, 14, 1, 7);
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, l, 10, r));
	expect(a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&c);
}

/* The pages that were pinned are sent, whatever is mapped there now. */
static void stale(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;
	const size_t n = 1 << 16;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, n, 0), r = region(b.pd, n, ALL_RIGHTS);
	memset(l.p, 'o', n);
	CHECK(mmap(l.p, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == l.p);
	memset(l.p, 'n', n);
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, l, (uint32_t)n, r));
	expect(a.cq, 1, IBV_WC_SUCCESS);
	CHECK(same(r.p, 'o', n));
	ibv_dereg_mr(l.mr);
	CHECK((l.mr = ibv_reg_mr(a.pd, l.p, n, 0)));
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 2, l, (uint32_t)n, r));
	expect(a.cq, 2, IBV_WC_SUCCESS);
	CHECK(same(r.p, 'n', n));
	CHECK(!mprotect(l.p, n, PROT_READ));
	ibv_dereg_mr(l.mr);
	CHECK((l.mr = ibv_reg_mr(a.pd, l.p, n, 0))); /* read-only */
	memset(r.p, 0, n);
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 3, l, (uint32_t)n, r));
	expect(a.cq, 3, IBV_WC_SUCCESS);
	CHECK(same(r.p, 'n', n));
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

static struct ibv_pd *registers_in;
static int registrations;

static void *register_much(void *stop)
{
	const size_t n = 256 << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	CHECK(p != MAP_FAILED);
	for (; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); registrations++) {
		struct ibv_mr *m = ibv_reg_mr(registers_in, p, n, IBV_ACCESS_LOCAL_WRITE);

		if (!m && errno == ENOMEM) /* the limit of an ordinary user */
			break;
		CHECK(m);
		ibv_dereg_mr(m);
	}
	munmap(p, n);
	return NULL;
}

/* Long registrations hold up nobody's transfers: if they shared a ring, few would fit in between. */
static void beside_registrations(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;
	int stop = 0, writes = 0;
	double t;
	pthread_t thread;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, 65536, 0), r = region(b.pd, 65536, ALL_RIGHTS);
	registers_in = a.pd;
	CHECK(!pthread_create(&thread, NULL, register_much, &stop));
	for (t = seconds(); seconds() - t < 2; writes++) {
		CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, l, 65536, r));
		expect(a.cq, 1, IBV_WC_SUCCESS);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(thread, NULL));
	CHECK(writes > 10 * registrations);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

int main(void)
{
	operations();
	if (getenv("SOFTVERBS_ENGINE") && *getenv("SOFTVERBS_ENGINE") == '1')
		posts_while_data_moves();
	atomics();
	errors();
	retries();
	shared_receives();
	numbers();
	stale();
	beside_registrations();
	CHECK(status_kb("VmPin") == 0);
	puts("ok    reliable");
	return 0;
}
