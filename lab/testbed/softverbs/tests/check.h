/* What the conformance programs have in common: a device, queue pairs that are connected, completions. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not so: %s (errno: %s)\n", __FILE__, __LINE__, #cond, strerror(errno)); \
			exit(1); \
		} \
	} while (0)
#define ALL_RIGHTS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static inline struct ibv_context *open_device(void)
{
	struct ibv_device **l = ibv_get_device_list(NULL);
	struct ibv_context *c;

	CHECK(l && l[0]);
	c = ibv_open_device(l[0]);
	CHECK(c);
	ibv_free_device_list(l);
	return c;
}

static inline void make_end(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = {.qp_type = type, .sq_sig_all = 1, .srq = e->srq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64}};

	if (!e->ctx)
		e->ctx = open_device();
	if (!e->pd)
		CHECK((e->pd = ibv_alloc_pd(e->ctx)));
	CHECK((e->ch = ibv_create_comp_channel(e->ctx)));
	CHECK((e->cq = ibv_create_cq(e->ctx, 128, e, e->ch, 0)));
	a.send_cq = a.recv_cq = e->cq;
	CHECK((e->qp = ibv_create_qp(e->pd, &a)));
}

static inline void end_end(struct end *e)
{
	CHECK(!ibv_destroy_qp(e->qp));
	if (e->srq)
		CHECK(!ibv_destroy_srq(e->srq));
	CHECK(!ibv_destroy_cq(e->cq));
	CHECK(!ibv_destroy_comp_channel(e->ch));
	CHECK(!ibv_dealloc_pd(e->pd));
	CHECK(!ibv_close_device(e->ctx));
}

static inline void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_RIGHTS, .qkey = 0x1111};

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		(qp->qp_type == IBV_QPT_RC ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)));
}

/* timeout, retry_cnt, rnr_retry as in ibv_modify_qp(3). */
static inline void to_rts(struct ibv_qp *qp, uint32_t peer, int timeout, int retry_cnt, int rnr_retry)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer, .min_rnr_timer = 12,
		.max_dest_rd_atomic = 16, .ah_attr = {.dlid = 1, .port_num = 1}};
	struct ibv_qp_attr b = {.qp_state = IBV_QPS_RTS, .timeout = (uint8_t)timeout, .retry_cnt = (uint8_t)retry_cnt,
		.rnr_retry = (uint8_t)rnr_retry, .max_rd_atomic = 16};
	int rc = qp->qp_type == IBV_QPT_RC;

	CHECK(!ibv_modify_qp(qp, &a, rc ? IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : IBV_QP_STATE));
	CHECK(!ibv_modify_qp(qp, &b, IBV_QP_STATE | IBV_QP_SQ_PSN |
		(rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

static inline void connect_ends(struct end *a, struct end *b)
{
	to_init(a->qp);
	to_init(b->qp);
	to_rts(a->qp, b->qp->qp_num, 14, 1, 7);
	to_rts(b->qp, a->qp->qp_num, 14, 1, 7);
}

static inline struct ibv_wc next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	time_t end = time(NULL) + 30;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		CHECK(time(NULL) < end);
	CHECK(n == 1);
	return wc;
}

static inline void expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status st)
{
	struct ibv_wc wc = next_wc(cq);

	if (wc.wr_id != id || wc.status != st) {
		fprintf(stderr, "request %lu: %s, expected %lu: %s\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status),
			(unsigned long)id, ibv_wc_status_str(st));
		abort();
	}
}

struct region {
	char *p;
	struct ibv_mr *mr;
};

static inline struct region region(struct ibv_pd *pd, size_t n, int access)
{
	struct region r = {mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), NULL};

	CHECK(r.p != MAP_FAILED);
	madvise(r.p, n, MADV_NOHUGEPAGE);
	CHECK((r.mr = ibv_reg_mr(pd, r.p, n, access)));
	return r;
}

static inline int post(struct ibv_qp *qp, enum ibv_wr_opcode op, uint64_t id, struct region l, uint32_t n,
		       struct region r)
{
	struct ibv_sge s = {(uintptr_t)l.p, n, l.mr->lkey};
	struct ibv_send_wr *bad, w = {.wr_id = id, .opcode = op, .sg_list = &s, .num_sge = 1, .imm_data = 77};

	if (r.mr)
		w.wr.rdma.remote_addr = (uintptr_t)r.p, w.wr.rdma.rkey = r.mr->rkey;
	return ibv_post_send(qp, &w, &bad);
}

static inline int post_receive(struct end *e, uint64_t id, struct region l, uint32_t n)
{
	struct ibv_sge s = {(uintptr_t)l.p, n, l.mr->lkey};
	struct ibv_recv_wr *bad, w = {.wr_id = id, .sg_list = &s, .num_sge = 1};

	return e->srq ? ibv_post_srq_recv(e->srq, &w, &bad) : ibv_post_recv(e->qp, &w, &bad);
}

static inline long status_kb(const char *field)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			kb = atol(line + strlen(field) + 1);
	fclose(f);
	return kb;
}
