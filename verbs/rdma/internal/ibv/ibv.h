/*
 * The calls of libibverbs, loaded at run time, in a form that suits cgo: each
 * sets errno when it fails (NULL or -1), and no argument points to a pointer.
 * v_load must have succeeded before any other is called; all are thread-safe
 * as the library's own are.
 */
#ifndef PINWHEEL_IBV_H
#define PINWHEEL_IBV_H

#include "abi.h"

/* Loads the library. NULL, or why not: a string that lives until the next v_load of this thread. */
const char *v_load(void);

struct v_device **v_get_device_list(int *n);
void v_free_device_list(struct v_device **list);
const char *v_get_device_name(struct v_device *device);
struct v_device *v_device_at(struct v_device **list, int i);
struct v_context *v_open_device(struct v_device *device);
int v_close_device(struct v_context *context);
int v_query_device(struct v_context *context, struct v_device_attr_ex *attr);
int v_query_port(struct v_context *context, uint8_t port, struct v_port_attr *attr);
int v_query_gid(struct v_context *context, uint8_t port, int index, uint8_t raw[16]);

/* Reads an event and acknowledges it at once: objects may be destroyed without waiting for its reader. */

struct v_pd *v_alloc_pd(struct v_context *context);
int v_dealloc_pd(struct v_pd *pd);
struct v_mr *v_reg_mr(struct v_pd *pd, uintptr_t addr, size_t length, unsigned access);
int v_dereg_mr(struct v_mr *mr);

struct v_comp_channel *v_create_comp_channel(struct v_context *context);
int v_destroy_comp_channel(struct v_comp_channel *channel);
struct v_cq *v_create_cq(struct v_context *context, int entries, struct v_comp_channel *channel);
int v_destroy_cq(struct v_cq *cq);
int v_poll_cq(struct v_cq *cq, int n, struct v_wc *wc);
int v_req_notify_cq(struct v_cq *cq);
/* Reads one completion event of the channel and acknowledges it. */
int v_get_cq_event(struct v_comp_channel *channel);

/* Writes what the queue pair got to *cap. */
struct v_qp *v_create_qp(struct v_pd *pd, struct v_cq *send_cq, struct v_cq *recv_cq, struct v_qp_cap *cap);
int v_destroy_qp(struct v_qp *qp);
int v_modify_qp(struct v_qp *qp, struct v_qp_attr *attr, int mask);
int v_post_send(struct v_qp *qp, uint64_t id, int opcode, unsigned flags, struct v_sge local, uint64_t remote_addr,
		uint32_t rkey);
int v_post_recv(struct v_qp *qp, uint64_t id, struct v_sge local);

#endif
