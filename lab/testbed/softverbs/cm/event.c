/* Event channels: a queue of events, and an eventfd that can be read as long as there is any. */
#include "cm.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

struct event {
	struct rdma_cm_event e; /* first: users see it */
	struct event *next;
	struct cm_id *owner; /* who waits for its acknowledgement: of a request the listener */
	unsigned char data[CM_DATA];
};
struct channel {
	struct rdma_event_channel ch;
	struct event *first, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;
static __thread int cancel_state;

/* rping cancels its thread in rdma_get_cm_event: that must not happen with the lock. */
void cm_lock(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&lock);
	cancel_state = old;
}

void cm_unlock(void)
{
	int old = cancel_state;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(old, NULL);
}

static struct channel *of(struct cm_id *id) { return (struct channel *)id->id.channel; }

CM_API struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *c;

	if (!cm_device(NULL) || !(c = calloc(1, sizeof(*c))))
		return NULL;
	c->last = &c->first;
	if ((c->ch.fd = eventfd(0, EFD_CLOEXEC)) < 0) {
		free(c);
		return NULL;
	}
	return &c->ch;
}

static void append(struct channel *c, struct event *e)
{
	if (!c->first)
		eventfd_write(c->ch.fd, 1);
	e->next = NULL;
	*c->last = e;
	c->last = &e->next;
}

static struct event *take(struct channel *c, struct event **at)
{
	struct event *e = *at;
	eventfd_t n;

	if (!(*at = e->next))
		c->last = at;
	if (!c->first)
		eventfd_read(c->ch.fd, &n); /* does not wait: it is not 0 */
	return e;
}

/* How much private data an event has: all that the message has room for, as with a real device. */
static uint8_t room(const struct cm_message *m, enum rdma_port_space ps)
{
	switch (m->type) {
	case CM_REQUEST:
		return ps == RDMA_PS_IB ? 92 : 56;
	case CM_REPLY:
		return 196;
	case CM_REJECT:
		return 148;
	default:
		return 0;
	}
}

/* With cm_lock. Of a channel that the program has destroyed, nobody asks for events. */
void cm_event_push(struct cm_id *id, enum rdma_cm_event_type type, int status, const struct cm_message *m)
{
	struct event *e = id->id.channel ? calloc(1, sizeof(*e)) : NULL;
	struct cm_id *listener = type == RDMA_CM_EVENT_CONNECT_REQUEST ? id->listener : NULL;

	if (!e)
		return;
	e->owner = listener ? listener : id;
	e->e.id = &id->id, e->e.listen_id = listener ? &listener->id : NULL, e->e.event = type, e->e.status = status;
	if (m) {
		e->e.param.conn = m->param;
		/* What one side starts is what the other one answers. */
		e->e.param.conn.responder_resources = m->param.initiator_depth;
		e->e.param.conn.initiator_depth = m->param.responder_resources;
		e->e.param.conn.private_data_len = room(m, id->id.ps);
		e->e.param.conn.private_data = e->e.param.conn.private_data_len ? e->data : NULL;
		memcpy(e->data, m->data, sizeof(e->data));
	}
	append(of(id), e);
}

void cm_events_drop(struct cm_id *id)
{
	struct channel *c = of(id);
	struct event **at = c ? &c->first : NULL, *e;

	while (c && (e = *at)) {
		struct cm_id *other = cm_of(e->e.id);

		if (e->owner != id && other != id) {
			at = &e->next;
			continue;
		}
		free(take(c, at));
		if (other != id) {
			cm_discard(other); /* which may take events from anywhere in the queue */
			at = &c->first;
		}
	}
}

void cm_events_settle(struct cm_id *id)
{
	while (id->acked != id->given)
		pthread_cond_wait(&acked, &lock);
}

void cm_events_move(struct cm_id *id, struct rdma_event_channel *to)
{
	struct channel *c = of(id);

	for (struct event **at = &c->first, *e; c && (e = *at);) {
		struct cm_id *other = cm_of(e->e.id);

		if (other != id && other->listener != id) {
			at = &e->next;
			continue;
		}
		other->id.channel = to; /* who has asked a listener comes with it */
		append((struct channel *)to, take(c, at));
	}
	id->id.channel = to;
}

CM_API void rdma_destroy_event_channel(struct rdma_event_channel *ch)
{
	struct channel *c = (struct channel *)ch;

	cm_lock();
	while (c->first) {
		struct event *e = take(c, &c->first);

		if (e->e.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			cm_discard(cm_of(e->e.id));
		free(e);
	}
	for (struct cm_id *i = cm_ids; i; i = i->next)
		if (i->id.channel == ch)
			i->id.channel = NULL;
	cm_unlock();
	close(ch->fd);
	free(c);
}

/* What the library itself has to do about an event, in the thread of the program that asks for it. */
static void attend(struct rdma_cm_event *e)
{
	struct cm_id *id = cm_of(e->id);

	if (e->event == RDMA_CM_EVENT_REJECTED)
		cm_qp_fail(id);
	if (e->event != RDMA_CM_EVENT_CONNECT_RESPONSE || !id->id.qp)
		return;
	e->status = -cm_qp_connect(id);
	e->event = e->status ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	cm_lock();
	if (e->status) {
		cm_close(id);
		id->state = CM_OVER;
	} else if (id->state == CM_REPLIED) { /* else the other side has ended, and that event comes next */
		cm_send(id, CM_READY, 0, NULL, 0);
		id->state = CM_CONNECTED;
	}
	cm_unlock();
}

/* The program gets an identifier that its listener has made: it is synchronous if the listener is. */
static void hand_over(struct cm_id *id)
{
	struct rdma_event_channel *own = id->listener->synchronous ? rdma_create_event_channel() : NULL;

	id->listener = NULL;
	if (own)
		cm_events_move(id, own);
	id->synchronous = own != NULL;
}

CM_API int rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **event)
{
	struct channel *c = (struct channel *)ch;
	struct pollfd p = {ch->fd, POLLIN, 0};
	struct event *e = NULL;

	for (;;) {
		cm_lock();
		if (c->first) {
			e = take(c, &c->first);
			e->owner->given++;
			if (e->e.listen_id)
				hand_over(cm_of(e->e.id));
		}
		cm_unlock();
		if (e) {
			attend(&e->e);
			*event = &e->e;
			return 0;
		}
		if (fcntl(ch->fd, F_GETFL) & O_NONBLOCK)
			return cm_fail(EAGAIN);
		if (poll(&p, 1, -1) < 0)
			return -1;
	}
}

CM_API int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct event *e = (struct event *)event;

	if (!e)
		return cm_fail(EINVAL);
	cm_lock();
	e->owner->acked++;
	pthread_cond_broadcast(&acked);
	cm_unlock();
	free(e);
	return 0;
}

int cm_complete(struct cm_id *id)
{
	int status;

	if (!id->synchronous)
		return 0;
	if (id->id.event)
		rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
	if (rdma_get_cm_event(id->id.channel, &id->id.event))
		return -1;
	if (!(status = id->id.event->status))
		return 0;
	return cm_fail(id->id.event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : status < 0 ? -status : status);
}

CM_API const char *rdma_event_str(enum rdma_cm_event_type t)
{
#define NAME(e) [e] = #e
	static const char *const name[] = {NAME(RDMA_CM_EVENT_ADDR_RESOLVED), NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED), NAME(RDMA_CM_EVENT_ROUTE_ERROR), NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE), NAME(RDMA_CM_EVENT_CONNECT_ERROR), NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED), NAME(RDMA_CM_EVENT_ESTABLISHED), NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL), NAME(RDMA_CM_EVENT_MULTICAST_JOIN), NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE), NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT)};
#undef NAME

	return (size_t)t < sizeof(name) / sizeof(*name) ? name[t] : "UNKNOWN EVENT";
}
