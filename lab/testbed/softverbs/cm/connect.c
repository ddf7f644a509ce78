/* Connections: asking for one, listening, accepting, rejecting, and their end. */
#include "cm.h"
#include <fcntl.h>

#define BACKLOG_SECONDS 10

static uint8_t least(uint8_t a, uint8_t b) { return a < b ? a : b; }

/* What this side tells the other one; NULL: what rdma_connect(3) says of it. */
static void tell(struct cm_id *id, const struct rdma_conn_param *p)
{
	uint8_t retry_count = id->mine.retry_count; /* of the side that has asked */

	id->mine = p ? *p : (struct rdma_conn_param){.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH, .retry_count = 7, .rnr_retry_count = 7};
	id->mine.private_data = NULL;
	id->mine.responder_resources = least(id->mine.responder_resources, CM_DEPTH);
	id->mine.initiator_depth = least(id->mine.initiator_depth, CM_DEPTH);
	id->mine.retry_count = least(id->state == CM_REQUESTED ? retry_count : id->mine.retry_count, 7);
	id->mine.rnr_retry_count = least(id->mine.rnr_retry_count, 7);
	if (id->id.qp)
		id->mine.qp_num = id->id.qp->qp_num, id->mine.srq = id->id.qp->srq != NULL;
}

/* Waits for a place in the listener's backlog, whose owner may be stopped. */
static int dial(int sock, const struct sockaddr_un *u, socklen_t n)
{
	struct timeval t = {.tv_sec = BACKLOG_SECONDS};

	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	return connect(sock, (const struct sockaddr *)u, n) ? errno : 0;
}

CM_API int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct cm_message refusal = {.type = CM_REJECT};
	struct cm_id *i = cm_of(id);
	struct sockaddr_un u;
	size_t len = p ? p->private_data_len : 0;
	int err;

	if (i->state != CM_ROUTED || (!id->qp && !p) || len > (id->ps == RDMA_PS_IB ? 92u : 56u))
		return cm_fail(EINVAL);
	tell(i, p);
	err = dial(i->sock, &u, cm_name(&u, cm_port(&id->route.addr.dst_addr)));
	cm_lock();
	i->state = CM_CONNECTING;
	if (!err && !(err = cm_send(i, CM_REQUEST, 0, p ? p->private_data : NULL, len)))
		err = cm_watch(i);
	if (err)
		i->state = CM_OVER;
	if (err == EAGAIN)
		cm_event_push(i, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
	else if (err)
		cm_event_push(i, RDMA_CM_EVENT_REJECTED, CM_INVALID_SERVICE, &refusal);
	cm_unlock();
	return cm_complete(i);
}

CM_API int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct cm_id *i = cm_of(id);
	int err = 0;

	(void)backlog; /* the thread takes connections at once, and requests wait in the channel */
	if (i->state == CM_IDLE && rdma_bind_addr(id, (struct sockaddr *)&any))
		return -1;
	if (i->state != CM_BOUND)
		return cm_fail(EINVAL);
	fcntl(i->sock, F_SETFL, O_NONBLOCK);
	cm_lock();
	if (listen(i->sock, SOMAXCONN))
		err = errno;
	i->state = CM_LISTENING;
	if (!err)
		err = cm_watch(i);
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

CM_API int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct cm_id *i = cm_of(id);
	size_t len = p ? p->private_data_len : 0;
	int err;

	if (i->state != CM_REQUESTED || (!id->qp && !p) || len > 196)
		return cm_fail(EINVAL); /* also if the other side has ended */
	tell(i, p);
	if (id->qp && (err = cm_qp_connect(i)))
		return cm_fail(err);
	cm_lock();
	err = i->state == CM_REQUESTED ? cm_send(i, CM_REPLY, 0, p ? p->private_data : NULL, len) : ECONNRESET;
	if (!err)
		i->state = CM_ACCEPTED;
	cm_unlock();
	if (err) {
		cm_qp_fail(i);
		return cm_fail(err);
	}
	return cm_complete(i);
}

CM_API int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	struct cm_id *i = cm_of(id);
	int err = EINVAL;

	if (len > 148)
		return cm_fail(EINVAL);
	cm_lock();
	if (i->state == CM_REQUESTED) {
		err = cm_send(i, CM_REJECT, CM_CONSUMER_DEFINED, data, len);
		i->state = CM_OVER;
	}
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

/* The last step of a connection whose queue pair the program changes itself. */
CM_API int rdma_establish(struct rdma_cm_id *id)
{
	struct cm_id *i = cm_of(id);
	int err = EINVAL;

	cm_lock();
	if (!id->qp && i->state == CM_REPLIED && !(err = cm_send(i, CM_READY, 0, NULL, 0)))
		i->state = CM_CONNECTED;
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

CM_API int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)id, (void)event; /* the other side says that it is ready, whatever comes first */
	return 0;
}

/* Of a connection that the other side has ended, the end has been told already. */
CM_API int rdma_disconnect(struct rdma_cm_id *id)
{
	struct cm_id *i = cm_of(id);
	int err = cm_qp_fail(i), ours = 0;

	if (err)
		return cm_fail(err);
	cm_lock();
	if (cm_is_connected(i)) {
		cm_send(i, CM_DISCONNECT, 0, NULL, 0); /* fails only if there is nobody to tell */
		i->state = CM_OVER;
		cm_event_push(i, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
		ours = 1;
	} else if (i->state != CM_OVER) {
		err = EINVAL;
	}
	cm_unlock();
	return err ? cm_fail(err) : ours ? cm_complete(i) : 0;
}
