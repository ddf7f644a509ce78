/* The sockets of connections and listeners, and the thread that reads them. */
#include "cm.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>

static int epoll_fd = -1;

static void receive(struct cm_id *id);

static void *run(void *unused)
{
	struct epoll_event e;

	(void)unused;
	for (;;) {
		struct cm_id *id;

		if (epoll_wait(epoll_fd, &e, 1, -1) != 1)
			continue;
		cm_lock();
		for (id = cm_ids; id && id->serial != e.data.u64; id = id->next)
			;
		if (id && id->sock >= 0)
			receive(id);
		cm_unlock();
	}
	return NULL;
}

static void in_child(void) { epoll_fd = -1; } /* the thread is the parent's, and its identifiers are */

static int start(void)
{
	static int registered;
	sigset_t all, old;
	pthread_attr_t a;
	pthread_t t;
	int err;

	if (!registered++)
		pthread_atfork(NULL, NULL, in_child);
	if ((epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
		return errno;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t, &a, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&a);
	if (err) {
		close(epoll_fd);
		epoll_fd = -1;
	}
	return err;
}

int cm_watch(struct cm_id *id)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = id->serial};
	int err = epoll_fd < 0 ? start() : 0;

	return err ? err : epoll_ctl(epoll_fd, EPOLL_CTL_ADD, id->sock, &e) ? errno : 0;
}

void cm_close(struct cm_id *id)
{
	if (id->sock < 0)
		return;
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, id->sock, NULL);
	shutdown(id->sock, SHUT_RDWR); /* a forked child may hold the socket as well */
	close(id->sock);
	id->sock = -1;
}

int cm_send(struct cm_id *id, enum cm_type type, int reason, const void *data, size_t len)
{
	struct cm_message m = {.type = type, .reason = reason, .param = id->mine};

	if (len > sizeof(m.data))
		return EINVAL;
	memcpy(&m.src, &id->id.route.addr.src_storage, sizeof(m.src));
	memcpy(&m.dst, &id->id.route.addr.dst_storage, sizeof(m.dst));
	if (len)
		memcpy(m.data, data, len);
	return send(id->sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m) ? 0 : errno;
}

static void arrive(struct cm_id *listener)
{
	struct cm_id *id;
	int sock;

	while ((sock = accept4(listener->sock, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (!(id = cm_make(listener->id.channel, listener->id.context, listener->id.ps))) {
			close(sock);
			return;
		}
		id->sock = sock, id->state = CM_ARRIVING, id->listener = listener;
		if (cm_watch(id))
			cm_discard(id);
	}
}

static void ask(struct cm_id *id, const struct cm_message *m)
{
	memcpy(&id->id.route.addr.src_storage, &m->dst, sizeof(m->dst));
	memcpy(&id->id.route.addr.dst_storage, &m->src, sizeof(m->src));
	id->peer = m->param;
	id->mine.retry_count = m->param.retry_count; /* the side that asks says how often both repeat */
	id->state = CM_REQUESTED;
	if (cm_set_device(id))
		cm_discard(id);
	else
		cm_event_push(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, m);
}

/* The other side has closed the socket, or has ended. */
static void lost(struct cm_id *id)
{
	struct cm_message rejection = {.type = CM_REJECT};
	enum cm_state was = id->state;

	if (was == CM_ARRIVING) {
		cm_discard(id);
		return;
	}
	cm_close(id);
	id->state = CM_OVER;
	if (was == CM_REPLIED || was == CM_CONNECTED)
		cm_event_push(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	else if (was == CM_REQUESTED || was == CM_CONNECTING || was == CM_ACCEPTED)
		cm_event_push(id, RDMA_CM_EVENT_REJECTED, CM_CONSUMER_DEFINED, &rejection);
}

static void receive(struct cm_id *id)
{
	struct cm_message m;
	ssize_t n;

	if (id->state == CM_LISTENING) {
		arrive(id);
		return;
	}
	do /* ECONNRESET is told once, and before what the other side had sent */
		n = recv(id->sock, &m, sizeof(m), MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == EAGAIN)
		return;
	if (n != sizeof(m)) {
		lost(id);
	} else if (m.type == CM_REQUEST && id->state == CM_ARRIVING) {
		ask(id, &m);
	} else if (m.type == CM_REPLY && id->state == CM_CONNECTING) {
		id->peer = m.param;
		id->state = CM_REPLIED;
		cm_event_push(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &m);
	} else if (m.type == CM_REJECT && id->state == CM_CONNECTING) {
		id->state = CM_OVER;
		cm_event_push(id, RDMA_CM_EVENT_REJECTED, m.reason, &m);
	} else if (m.type == CM_READY && id->state == CM_ACCEPTED) {
		id->state = CM_CONNECTED;
		cm_event_push(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	} else if (m.type == CM_DISCONNECT && cm_is_connected(id)) {
		id->state = CM_OVER;
		cm_event_push(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	}
}
