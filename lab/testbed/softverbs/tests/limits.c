/* What is fuller, smaller or larger than usual: full completion queues, sends of few bytes, regions of GiBs. */
#include "check.h"

static void fill(struct end *a, struct end *b, struct region l, struct region r, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		CHECK(!post_receive(b, i, r, 100));
		CHECK(!post(a->qp, IBV_WR_SEND, i, l, 100, (struct region){0}));
		expect(a->cq, i, IBV_WC_SUCCESS);
	}
}

/* Completions that wait keep their order, and all have to have room. */
static void resized(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, 4096, ALL_RIGHTS), r = region(b.pd, 4096, ALL_RIGHTS);
	fill(&a, &b, l, r, 0, 7);
	expect(b.cq, 0, IBV_WC_SUCCESS);
	CHECK(!ibv_resize_cq(b.cq, 16) && b.cq->cqe >= 16 && b.cq->cqe < 64);
	fill(&a, &b, l, r, 7, 17);
	CHECK(!ibv_resize_cq(b.cq, 64) && b.cq->cqe >= 64);
	fill(&a, &b, l, r, 17, 40);
	CHECK(ibv_resize_cq(b.cq, 16) == EINVAL && b.cq->cqe >= 64);
	CHECK(ibv_resize_cq(b.cq, 0) == EINVAL);
	for (uint64_t i = 1; i < 40; i++)
		expect(b.cq, i, IBV_WC_SUCCESS);
	CHECK(!ibv_resize_cq(b.cq, 16));
	fill(&a, &b, l, r, 40, 50);
	for (uint64_t i = 40; i < 50; i++)
		expect(b.cq, i, IBV_WC_SUCCESS);
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

static int state(struct ibv_qp *qp)
{
	struct ibv_qp_attr a;

	CHECK(!ibv_query_qp(qp, &a, IBV_QP_STATE, NULL));
	return a.qp_state;
}

/* An event of the queue, and one of each queue pair that uses it: also of one that does nothing. */
static void overrun(void)
{
	struct end a = {0}, b = {0};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_async_event e;
	struct ibv_qp *idle;
	struct region l, r;
	struct ibv_wc wc;
	int failed = 0, n;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	init.send_cq = b.cq;
	CHECK((init.recv_cq = ibv_create_cq(b.ctx, 1, NULL, NULL, 0)) && (idle = ibv_create_qp(b.pd, &init)));
	l = region(a.pd, 4096, ALL_RIGHTS), r = region(b.pd, 4096, ALL_RIGHTS);
	CHECK(!ibv_resize_cq(b.cq, 16));
	n = b.cq->cqe;
	fill(&a, &b, l, r, 0, (uint64_t)n);
	CHECK(state(b.qp) == IBV_QPS_RTS);
	CHECK(!post_receive(&b, 100, r, 100));
	CHECK(!post(a.qp, IBV_WR_SEND, 100, l, 100, (struct region){0}));
	expect(a.cq, 100, IBV_WC_REM_OP_ERR);
	CHECK(state(b.qp) == IBV_QPS_ERR && state(idle) == IBV_QPS_ERR && state(a.qp) == IBV_QPS_ERR);
	CHECK(!ibv_get_async_event(b.ctx, &e) && e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == b.cq);
	ibv_ack_async_event(&e);
	for (int i = 0; i < 2; i++) {
		CHECK(!ibv_get_async_event(b.ctx, &e) && e.event_type == IBV_EVENT_QP_FATAL);
		failed |= e.element.qp == b.qp ? 1 : e.element.qp == idle ? 2 : 4;
		ibv_ack_async_event(&e);
	}
	CHECK(failed == 3);
	for (int i = 0; i < n; i++)
		expect(b.cq, (uint64_t)i, IBV_WC_SUCCESS);
	CHECK(!post_receive(&b, 101, r, 100) && !ibv_poll_cq(b.cq, 1, &wc)); /* it takes no more */
	CHECK(!ibv_destroy_qp(idle) && !ibv_destroy_cq(init.recv_cq));
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

/* A small send is copied out of the mapping; where nothing is mapped, out of the pages that are pinned. */
static void small(void)
{
	struct end a = {0}, b = {0};
	struct region l, r;
	struct ibv_sge s[2];
	struct ibv_send_wr *bad, w = {.opcode = IBV_WR_SEND, .sg_list = s, .num_sge = 2};

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, 8192, ALL_RIGHTS), r = region(b.pd, 4096, ALL_RIGHTS);
	for (int i = 0; i < 8192; i++)
		l.p[i] = (char)(i / 7);
	s[0] = (struct ibv_sge){(uintptr_t)l.p + 4000, 100, l.mr->lkey};
	s[1] = (struct ibv_sge){(uintptr_t)l.p + 10, 20, l.mr->lkey};
	for (int unmapped = 0; unmapped < 3; unmapped++) {
		static char want[120];

		if (!unmapped) {
			memcpy(want, l.p + 4000, 100), memcpy(want + 100, l.p + 10, 20);
		} else {
			munmap(l.p + 4096 * (2 - unmapped), 4096);
		}
		for (int pieces = 1; pieces <= 2; pieces++) { /* the first one lies in two pages */
			CHECK(!post_receive(&b, 1, r, 256));
			w.num_sge = pieces;
			CHECK(!ibv_post_send(a.qp, &w, &bad));
			expect(a.cq, 0, IBV_WC_SUCCESS);
			expect(b.cq, 1, IBV_WC_SUCCESS);
			CHECK(!memcmp(r.p, want, pieces == 1 ? 100 : 120));
		}
		CHECK(!post_receive(&b, 1, r, 256));
		CHECK(!post(a.qp, IBV_WR_SEND, 2, (struct region){l.p + 4000, l.mr}, 90, (struct region){0}));
		expect(a.cq, 2, IBV_WC_SUCCESS);
		expect(b.cq, 1, IBV_WC_SUCCESS);
		CHECK(!memcmp(r.p, want, 90));
	}
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
}

/* 1 GiB and more: the same 2 MiB of memory at many addresses, so that it costs little. */
static void large(void)
{
	const size_t piece = 2 << 20, n = ((size_t)1 << 30) + 4 * piece;
	int fd = memfd_create("large", MFD_CLOEXEC);
	struct end a = {0}, b = {0};
	struct region l, r;
	struct ibv_mr *m;
	char *at;

	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)piece));
	l.p = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(l.p != MAP_FAILED);
	for (size_t i = 0; i < n; i += piece)
		CHECK(mmap(l.p + i, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == l.p + i);
	at = l.p + (1 << 30) - 5000;
	if (!(m = l.mr = ibv_reg_mr(a.pd, l.p, n, ALL_RIGHTS)) && errno == ENOMEM) {
		puts("skip  limits: no region of more than 1 GiB: ulimit -l");
	} else {
		CHECK(m && status_kb("VmPin") >= (long)(n >> 10));
		r = region(b.pd, 12288, ALL_RIGHTS);
		for (int i = 0; i < 10000; i++)
			at[i] = (char)(i * 7);
		CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, (struct region){at, m}, 10000, r));
		expect(a.cq, 1, IBV_WC_SUCCESS);
		CHECK(!memcmp(r.p, at, 10000));
		memset(r.p, 'y', 10000);
		CHECK(!post(a.qp, IBV_WR_RDMA_READ, 2, (struct region){at, m}, 10000, r));
		expect(a.cq, 2, IBV_WC_SUCCESS);
		CHECK(at[0] == 'y' && !memcmp(at, at + 1, 9999));
		CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 3, (struct region){l.p + n - 10, m}, 11, r)); /* one byte too many */
		expect(a.cq, 3, IBV_WC_LOC_PROT_ERR);
		CHECK(!ibv_dereg_mr(m));
		ibv_dereg_mr(r.mr);
	}
	munmap(l.p, n);
	close(fd);
	end_end(&a), end_end(&b);
}

int main(void)
{
	resized();
	overrun();
	small();
	large();
	CHECK(status_kb("VmPin") == 0);
	puts("ok    limits");
	return 0;
}
