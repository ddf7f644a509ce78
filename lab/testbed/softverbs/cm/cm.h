/*
 * librdmacm for softverbs: connections between the processes of one user on one machine.
 *
 * A port is an abstract Unix socket that listens, a connection is one of type SOCK_SEQPACKET. So nothing is
 * left of either when its process ends, however it ends, and the other side hears of it. A thread reads the
 * sockets, as the kernel does for a real device: events arise whether or not the program asks for any.
 *
 * One lock, cm_lock, guards identifiers, channels and events. Nobody holds it while waiting.
 */
#ifndef CM_H
#define CM_H
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CM_API __attribute__((visibility("default")))
#define CM_DEPTH 16 /* RDMA reads and atomics under way, as the device has it */
#define CM_DATA 256

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_RESOLVED, /* the address is */
	CM_ROUTED,
	CM_LISTENING,
	CM_ARRIVING,   /* somebody has connected to a listener and not yet asked */
	CM_REQUESTED,  /* asked; the program may accept or reject */
	CM_CONNECTING, /* we have asked */
	CM_REPLIED,    /* the other side has accepted, and waits for our queue pair */
	CM_ACCEPTED,   /* we have accepted, and wait for the other side's */
	CM_CONNECTED,
	CM_OVER,
};

/* What goes through a socket. */
enum cm_type { CM_REQUEST = 1, CM_REPLY, CM_REJECT, CM_READY, CM_DISCONNECT };
struct cm_message {
	enum cm_type type;
	int reason;                   /* of a rejection; enum ib_cm_rej_reason */
	struct rdma_conn_param param; /* of the sender; private_data means nothing */
	struct sockaddr_storage src, dst;
	unsigned char data[CM_DATA];
};
#define CM_INVALID_SERVICE 8  /* IB_CM_REJ_INVALID_SERVICE_ID: nobody listens */
#define CM_CONSUMER_DEFINED 28 /* the program rejects, or has ended */

struct cm_id {
	struct rdma_cm_id id; /* first: users see it */
	struct cm_id *next;
	uint64_t serial; /* tells the thread which one a socket belongs to */
	int sock;
	enum cm_state state;
	int synchronous;        /* it has a channel of its own; calls wait for their event */
	struct cm_id *listener; /* who has made it, until the program gets it */
	unsigned given, acked;  /* events */
	struct rdma_conn_param mine, peer;
	struct ibv_qp_init_attr *qp_init; /* of the queue pairs that rdma_get_request makes */
};

static inline struct cm_id *cm_of(struct rdma_cm_id *id) { return (struct cm_id *)id; }
static inline int cm_is_connected(const struct cm_id *i) { return i->state >= CM_REPLIED && i->state <= CM_CONNECTED; }
static inline int cm_fail(int err) { return errno = err, -1; }

/* event.c */
void cm_lock(void);
void cm_unlock(void);
void cm_event_push(struct cm_id *id, enum rdma_cm_event_type type, int status, const struct cm_message *m);
void cm_events_drop(struct cm_id *id);    /* those not yet given out */
void cm_events_settle(struct cm_id *id);  /* waits until those given out are acknowledged */
void cm_events_move(struct cm_id *id, struct rdma_event_channel *to);
int cm_complete(struct cm_id *id);        /* waits for the event of a synchronous call; without cm_lock */

/* wire.c; with cm_lock */
int cm_watch(struct cm_id *id);
void cm_close(struct cm_id *id);
int cm_send(struct cm_id *id, enum cm_type type, int reason, const void *data, size_t len);

/* id.c */
extern struct cm_id *cm_ids;
struct ibv_context *cm_device(struct ibv_pd **pd);
int cm_set_device(struct cm_id *id);
struct cm_id *cm_make(struct rdma_event_channel *ch, void *context, enum rdma_port_space ps);
void cm_detach(struct cm_id *id);  /* with cm_lock: no event of it arises or waits any more */
void cm_discard(struct cm_id *id); /* with cm_lock: the end of one that the program never saw */

/* address.c */
socklen_t cm_size(const struct sockaddr *a); /* 0: of no family we know */
uint16_t cm_port(const struct sockaddr *a);
int cm_is_any(const struct sockaddr *a);
int cm_is_local(const struct sockaddr *a);
void cm_take_host(struct sockaddr *to, const struct sockaddr *from); /* and keeps the port */
socklen_t cm_name(struct sockaddr_un *u, uint16_t port);
int cm_bind(struct cm_id *id, const struct sockaddr *a); /* a socket with this address's port, or any; 0 or an errno */

/* qp.c */
int cm_qp_connect(struct cm_id *id); /* to RTS; 0 or an errno */
int cm_qp_fail(struct cm_id *id);
#endif
