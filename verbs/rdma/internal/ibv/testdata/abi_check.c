/* Compiled, never run, by TestDeclarationsMatchTheHeader: abi.h against the real header. */
#include <infiniband/verbs.h>

#include "../abi.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define FIELD2(ours, of, theirs, tf)                                                        \
	_Static_assert(offsetof(ours, of) == offsetof(theirs, tf) &&                       \
			       sizeof(((ours *)0)->of) == sizeof(((theirs *)0)->tf),       \
		       #ours "." #of)
#define FIELD(name, f) FIELD2(struct v_##name, f, struct ibv_##name, f)
#define VALUE(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)

SIZE(union v_gid, union ibv_gid);

SIZE(struct v_context_ops, struct ibv_context_ops);
FIELD(context_ops, poll_cq);
FIELD(context_ops, req_notify_cq);
FIELD(context_ops, post_send);
FIELD(context_ops, post_recv);

SIZE(struct v_context, struct ibv_context);
FIELD(context, ops);
FIELD(context, async_fd);
FIELD(context, abi_compat);
VALUE(V_ABI_IS_EXTENDED, __VERBS_ABI_IS_EXTENDED);

_Static_assert(sizeof(struct v_context_ex) ==
		       sizeof(struct verbs_context) - offsetof(struct verbs_context, query_device_ex),
	       "distance of query_device_ex from the end");
_Static_assert(sizeof(struct v_context_ex) - offsetof(struct v_context_ex, size) ==
		       sizeof(struct verbs_context) - offsetof(struct verbs_context, sz),
	       "distance of the size from the end");

SIZE(struct v_device_attr, struct ibv_device_attr);
FIELD(device_attr, max_mr_size);
FIELD(device_attr, max_qp);
FIELD(device_attr, max_qp_wr);
FIELD(device_attr, device_cap_flags);
FIELD(device_attr, max_sge);
FIELD(device_attr, max_cqe);
FIELD(device_attr, max_mr);
FIELD(device_attr, max_qp_rd_atom);
FIELD(device_attr, max_qp_init_rd_atom);
FIELD(device_attr, atomic_cap);
FIELD(device_attr, phys_port_cnt);
FIELD2(struct v_device_attr_ex, orig, struct ibv_device_attr_ex, orig_attr);
FIELD2(struct v_device_attr_ex, odp.general, struct ibv_device_attr_ex, odp_caps.general_caps);
FIELD2(struct v_device_attr_ex, odp.rc, struct ibv_device_attr_ex, odp_caps.per_transport_caps.rc_odp_caps);

/* Grows at its end; the symbol ibv_query_port knows it as it was up to flags. */
_Static_assert(sizeof(struct v_port_attr) <= sizeof(struct ibv_port_attr), "v_port_attr");
FIELD(port_attr, state);
FIELD(port_attr, active_mtu);
FIELD(port_attr, gid_tbl_len);
FIELD(port_attr, max_msg_sz);
FIELD(port_attr, lid);
FIELD(port_attr, link_layer);

SIZE(struct v_mr, struct ibv_mr);
FIELD(mr, lkey);
FIELD(mr, rkey);
SIZE(struct v_comp_channel, struct ibv_comp_channel);
FIELD(comp_channel, fd);
FIELD(cq, context);
FIELD(cq, channel);
FIELD(qp, context);
FIELD(qp, qp_num);

SIZE(struct v_qp_init_attr, struct ibv_qp_init_attr);
FIELD(qp_init_attr, send_cq);
FIELD(qp_init_attr, recv_cq);
FIELD(qp_init_attr, cap.max_inline_data);
FIELD(qp_init_attr, qp_type);
SIZE(struct v_ah_attr, struct ibv_ah_attr);
FIELD(ah_attr, grh.dgid);
FIELD(ah_attr, grh.sgid_index);
FIELD(ah_attr, grh.hop_limit);
FIELD(ah_attr, dlid);
FIELD(ah_attr, is_global);
FIELD(ah_attr, port_num);
SIZE(struct v_qp_attr, struct ibv_qp_attr);
FIELD(qp_attr, qp_state);
FIELD(qp_attr, path_mtu);
FIELD(qp_attr, rq_psn);
FIELD(qp_attr, sq_psn);
FIELD(qp_attr, dest_qp_num);
FIELD(qp_attr, qp_access_flags);
FIELD(qp_attr, ah_attr);
FIELD(qp_attr, pkey_index);
FIELD(qp_attr, max_rd_atomic);
FIELD(qp_attr, max_dest_rd_atomic);
FIELD(qp_attr, min_rnr_timer);
FIELD(qp_attr, port_num);
FIELD(qp_attr, timeout);
FIELD(qp_attr, retry_cnt);
FIELD(qp_attr, rnr_retry);

SIZE(struct v_sge, struct ibv_sge);
FIELD(sge, length);
FIELD(sge, lkey);
SIZE(struct v_send_wr, struct ibv_send_wr);
FIELD(send_wr, sg_list);
FIELD(send_wr, num_sge);
FIELD(send_wr, opcode);
FIELD(send_wr, send_flags);
FIELD2(struct v_send_wr, remote_addr, struct ibv_send_wr, wr.rdma.remote_addr);
FIELD2(struct v_send_wr, rkey, struct ibv_send_wr, wr.rdma.rkey);
SIZE(struct v_recv_wr, struct ibv_recv_wr);
FIELD(recv_wr, sg_list);
FIELD(recv_wr, num_sge);
SIZE(struct v_wc, struct ibv_wc);
FIELD(wc, status);
FIELD(wc, opcode);
FIELD(wc, vendor_err);
FIELD(wc, byte_len);

VALUE(V_QPT_RC, IBV_QPT_RC);
VALUE(V_QPS_INIT, IBV_QPS_INIT);
VALUE(V_QPS_RTR, IBV_QPS_RTR);
VALUE(V_QPS_RTS, IBV_QPS_RTS);
VALUE(V_QPS_ERR, IBV_QPS_ERR);
VALUE(V_SEND_INLINE, IBV_SEND_INLINE);
VALUE(V_QP_STATE, IBV_QP_STATE);
VALUE(V_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
VALUE(V_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX);
VALUE(V_QP_PORT, IBV_QP_PORT);
VALUE(V_QP_AV, IBV_QP_AV);
VALUE(V_QP_PATH_MTU, IBV_QP_PATH_MTU);
VALUE(V_QP_TIMEOUT, IBV_QP_TIMEOUT);
VALUE(V_QP_RETRY_CNT, IBV_QP_RETRY_CNT);
VALUE(V_QP_RNR_RETRY, IBV_QP_RNR_RETRY);
VALUE(V_QP_RQ_PSN, IBV_QP_RQ_PSN);
VALUE(V_QP_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
VALUE(V_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
VALUE(V_QP_SQ_PSN, IBV_QP_SQ_PSN);
VALUE(V_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
VALUE(V_QP_DEST_QPN, IBV_QP_DEST_QPN);
VALUE(V_PORT_ACTIVE, IBV_PORT_ACTIVE);
VALUE(V_LINK_LAYER_ETHERNET, IBV_LINK_LAYER_ETHERNET);
VALUE(V_ODP_SUPPORT, IBV_ODP_SUPPORT);
VALUE(V_ACCESS_OPTIONAL_FIRST, IBV_ACCESS_OPTIONAL_FIRST);
