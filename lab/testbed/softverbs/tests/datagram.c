/* UD queue pairs: what is expected arrives after a place for the header, anything else is lost. */
#include "check.h"

static int send_to(struct end *a, struct ibv_ah *ah, struct end *b, uint64_t id, struct region l, uint32_t n,
		   uint32_t qkey)
{
	struct ibv_sge s = {(uintptr_t)l.p, n, l.mr->lkey};
	struct ibv_send_wr *bad, w = {.wr_id = id, .opcode = IBV_WR_SEND_WITH_IMM, .sg_list = &s, .num_sge = 1,
		.imm_data = 5};

	w.wr.ud.ah = ah, w.wr.ud.remote_qpn = b->qp->qp_num, w.wr.ud.remote_qkey = qkey;
	return ibv_post_send(a->qp, &w, &bad);
}

int main(void)
{
	struct end a = {0}, b = {0};
	struct ibv_ah_attr at = {.dlid = 1, .port_num = 1};
	struct region l, r;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	make_end(&a, IBV_QPT_UD);
	make_end(&b, IBV_QPT_UD);
	to_init(a.qp), to_init(b.qp);
	to_rts(a.qp, 0, 0, 0, 0), to_rts(b.qp, 0, 0, 0, 0);
	CHECK((ah = ibv_create_ah(a.pd, &at)));
	l = region(a.pd, 8192, ALL_RIGHTS), r = region(b.pd, 8192, ALL_RIGHTS);
	memset(l.p, 'u', 8192);
	CHECK(!send_to(&a, ah, &b, 1, l, 100, 0x1111)); /* no receive: lost */
	expect(a.cq, 1, IBV_WC_SUCCESS);
	CHECK(!post_receive(&b, 10, r, 140));
	CHECK(!send_to(&a, ah, &b, 2, l, 100, 0x2222)); /* another Q_Key: lost */
	expect(a.cq, 2, IBV_WC_SUCCESS);
	CHECK(!ibv_poll_cq(b.cq, 1, &wc));
	CHECK(!send_to(&a, ah, &b, 3, l, 100, 0x1111));
	expect(a.cq, 3, IBV_WC_SUCCESS);
	wc = next_wc(b.cq);
	CHECK(wc.wr_id == 10 && wc.byte_len == 140 && wc.src_qp == a.qp->qp_num && wc.imm_data == 5);
	CHECK(!r.p[39] && r.p[40] == 'u' && r.p[139] == 'u' && !r.p[140]);
	CHECK(post(a.qp, IBV_WR_RDMA_WRITE, 4, l, 10, r) == EINVAL);
	CHECK(!send_to(&a, ah, &b, 5, l, 5000, 0x1111)); /* longer than a packet */
	expect(a.cq, 5, IBV_WC_LOC_LEN_ERR);
	CHECK(!ibv_destroy_ah(ah));
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b);
	puts("ok    datagram");
	return 0;
}
