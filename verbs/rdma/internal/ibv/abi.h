/*
 * The part of libibverbs' binary interface that Pinwheel uses (symbol versions
 * IBVERBS_1.1 and later of libibverbs.so.1, unchanged since 2008).
 *
 * Declared here, and not taken from <infiniband/verbs.h>, so that every build
 * has RDMA and finds out at run time whether the library is there; see doc.go.
 * Only what is read or written is named; the rest is "unused". abi_check.c
 * compares all of it with the real header.
 */
#ifndef PINWHEEL_IBV_ABI_H
#define PINWHEEL_IBV_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct v_device; /* opaque */
struct v_pd;     /* opaque */
struct v_cq;
struct v_qp;
struct v_wc;
struct v_send_wr;
struct v_recv_wr;

union v_gid {
	uint8_t raw[16];
	uint64_t align;
};

/* The data path has no symbols: it goes through this table of the driver. */
struct v_context_ops {
	void *unused0[11];
	int (*poll_cq)(struct v_cq *, int n, struct v_wc *);
	int (*req_notify_cq)(struct v_cq *, int solicited_only);
	void *unused1[12];
	int (*post_send)(struct v_qp *, struct v_send_wr *, struct v_send_wr **bad);
	int (*post_recv)(struct v_qp *, struct v_recv_wr *, struct v_recv_wr **bad);
	void *unused2[5];
};

struct v_context {
	struct v_device *device;
	struct v_context_ops ops;
	int cmd_fd;
	int async_fd;
	int num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat; /* V_ABI_IS_EXTENDED: the context is the tail of a v_context_ex */
};

#define V_ABI_IS_EXTENDED ((void *)UINTPTR_MAX)

struct v_device_attr {
	char fw_ver[64];
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	unsigned device_cap_flags;
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int unused0[2];
	int max_qp_init_rd_atom;
	int unused1;
	int atomic_cap;
	int unused2[14];
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;
};

struct v_device_attr_ex {
	struct v_device_attr orig;
	uint32_t comp_mask;
	struct {
		uint64_t general;
		uint32_t rc, uc, ud;
	} odp;
};

/* Grows at its front; the size before the context says how far it reaches. */
struct v_context_ex {
	int (*query_device_ex)(struct v_context *, const void *input, struct v_device_attr_ex *, size_t attr_size);
	void *unused[10];
	uint64_t placeholder;
	size_t size;
	struct v_context context;
};

struct v_port_attr {
	int state;
	int max_mtu;
	int active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;
	uint32_t unused0[2];
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t unused1[8];
	uint8_t link_layer;
	uint8_t flags;
	uint16_t port_cap_flags2;
};

struct v_mr {
	struct v_context *context;
	struct v_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

struct v_comp_channel {
	struct v_context *context;
	int fd;
	int refcnt;
};

struct v_cq { /* head only */
	struct v_context *context;
	struct v_comp_channel *channel;
};

struct v_qp { /* head only */
	struct v_context *context;
	void *unused[5];
	uint32_t handle;
	uint32_t qp_num;
};

struct v_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct v_qp_init_attr {
	void *qp_context;
	struct v_cq *send_cq;
	struct v_cq *recv_cq;
	void *srq;
	struct v_qp_cap cap;
	int qp_type;
	int sq_sig_all;
};

struct v_ah_attr {
	struct {
		union v_gid dgid;
		uint32_t flow_label;
		uint8_t sgid_index;
		uint8_t hop_limit;
		uint8_t traffic_class;
	} grh;
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t is_global;
	uint8_t port_num;
};

struct v_qp_attr {
	int qp_state;
	int cur_qp_state;
	int path_mtu;
	int path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	unsigned qp_access_flags;
	struct v_qp_cap cap;
	struct v_ah_attr ah_attr;
	struct v_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint32_t rate_limit;
};

struct v_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct v_send_wr {
	uint64_t wr_id;
	struct v_send_wr *next;
	struct v_sge *sg_list;
	int num_sge;
	int opcode;
	unsigned send_flags;
	uint32_t imm_data;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t unused[9]; /* other operations' arguments */
};

struct v_recv_wr {
	uint64_t wr_id;
	struct v_recv_wr *next;
	struct v_sge *sg_list;
	int num_sge;
};

struct v_wc {
	uint64_t wr_id;
	int status;
	int opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_data;
	uint32_t qp_num;
	uint32_t src_qp;
	unsigned wc_flags;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

enum {
	V_QPT_RC = 2,

	V_QPS_INIT = 1,
	V_QPS_RTR = 2,
	V_QPS_RTS = 3,
	V_QPS_ERR = 6,

	V_QP_STATE = 1 << 0,
	V_QP_ACCESS_FLAGS = 1 << 3,
	V_QP_PKEY_INDEX = 1 << 4,
	V_QP_PORT = 1 << 5,
	V_QP_AV = 1 << 7,
	V_QP_PATH_MTU = 1 << 8,
	V_QP_TIMEOUT = 1 << 9,
	V_QP_RETRY_CNT = 1 << 10,
	V_QP_RNR_RETRY = 1 << 11,
	V_QP_RQ_PSN = 1 << 12,
	V_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	V_QP_MIN_RNR_TIMER = 1 << 15,
	V_QP_SQ_PSN = 1 << 16,
	V_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	V_QP_DEST_QPN = 1 << 20,

	V_SEND_INLINE = 1 << 3,

	V_PORT_ACTIVE = 4,
	V_LINK_LAYER_ETHERNET = 2,

	V_ODP_SUPPORT = 1 << 0,

	V_ACCESS_OPTIONAL_FIRST = 1 << 20, /* the kernel ignores bits 20 to 29 that it does not know */
};

#endif
