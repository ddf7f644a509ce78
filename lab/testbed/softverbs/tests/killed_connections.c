/*
 * A peer that is killed at a random moment of connecting, accepting and disconnecting: each connection with it
 * ends by one event, and those with others go on.
 */
#include "connections.h"

#define VICTIMS 60

static in_port_t to_port; /* of the victim */

static struct sockaddr_in port(in_port_t p)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = p};
}

static pid_t start(const char *role, in_port_t to)
{
	char number[8];
	pid_t child;

	snprintf(number, sizeof(number), "%u", to);
	if (!(child = fork())) {
		execl("/proc/self/exe", role, number, NULL);
		_exit(1);
	}
	return child;
}

/* Connects and ends the connection, by either way to do so. */
static void asking(in_port_t to)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	here = port(to);
	for (unsigned n = 0;; n++) {
		struct rdma_cm_id *id = routed(ch);

		ask(id, "");
		next_id(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
		if (n % 2) {
			CHECK(!rdma_disconnect(id));
			next_id(ch, RDMA_CM_EVENT_DISCONNECTED, 0);
		}
		rdma_destroy_ep(id);
	}
}

/* Accepts what it is asked, or rejects it. */
static void answering(in_port_t at)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a = port(at);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(id, (struct sockaddr *)&a) && !rdma_listen(id, 8));
	for (unsigned n = 1; !rdma_get_cm_event(ch, &e);) {
		enum rdma_cm_event_type type = e->event;

		id = e->id;
		CHECK(!rdma_ack_cm_event(e));
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && n++ % 4) {
			equip(id);
			CHECK(!rdma_accept(id, NULL));
		} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
			rdma_reject(id, "", 1); /* says EINVAL of one that is over */
			rdma_destroy_ep(id);
		}
	}
}

static struct {
	unsigned seen, open, accepted, ended;
	struct rdma_cm_id *bystander;
} all;

/* The next event, or none in so many milliseconds. */
static int listen_for(struct rdma_event_channel *l, int ms)
{
	struct pollfd p = {l->fd, POLLIN, 0};
	enum rdma_cm_event_type type;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	if (!poll(&p, 1, ms))
		return 0;
	CHECK(!rdma_get_cm_event(l, &e));
	type = e->event, id = e->id;
	CHECK(!rdma_ack_cm_event(e));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		all.seen++, all.open++;
		equip(id);
		all.accepted += !rdma_accept(id, NULL); /* else its end is known, and comes next */
	} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
		CHECK(id != all.bystander && (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED));
		rdma_destroy_ep(id);
		all.open--, all.ended++;
	}
	return 1;
}

static void stop(pid_t child)
{
	usleep((unsigned)rand() % 2000);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

static void who_asks(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_cm_id *lid = listener(l), *id = connected(a, l, &all.bystander);

	for (int i = 0; i < VICTIMS; i++) {
		unsigned until = all.seen + 1 + (unsigned)rand() % 20;
		pid_t child = start("asking", here.sin_port);

		while (all.seen < until)
			listen_for(l, -1);
		stop(child);
		while (listen_for(l, 10) || all.open)
			;
	}
	while (listen_for(l, 500)) /* of the last one */
		;
	CHECK(all.accepted > VICTIMS && all.ended == all.seen && !all.open);
	CHECK(!rdma_disconnect(all.bystander));
	CHECK(next_id(a, RDMA_CM_EVENT_DISCONNECTED, 0) == id);
	CHECK(next_id(l, RDMA_CM_EVENT_DISCONNECTED, 0) == all.bystander);
	rdma_destroy_ep(id), rdma_destroy_ep(all.bystander), rdma_destroy_ep(lid);
}

/* Every request has an end, and once the listener is dead it is that nobody listens. */
static void who_answers(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	unsigned connections = 0, rejected = 0;

	CHECK(!rdma_destroy_id(listener(l))); /* a free port */
	to_port = here.sin_port;
	for (int i = 0; i < VICTIMS; i++) {
		unsigned until = (unsigned)rand() % 20, n = 0;
		pid_t child = start("answering", to_port);

		for (int dead = 0; !dead;) {
			struct rdma_cm_id *id = routed(a);
			struct rdma_cm_event *e;

			ask(id, "");
			if (n++ == until)
				stop(child);
			CHECK(!rdma_get_cm_event(a, &e));
			if (e->event == RDMA_CM_EVENT_ESTABLISHED && n > until) {
				CHECK(!rdma_ack_cm_event(e) && !rdma_get_cm_event(a, &e));
				CHECK(e->event == RDMA_CM_EVENT_DISCONNECTED);
			}
			connections += e->event == RDMA_CM_EVENT_ESTABLISHED;
			rejected += e->event == RDMA_CM_EVENT_REJECTED && e->status == 28;
			if (e->event == RDMA_CM_EVENT_REJECTED && e->status == 8) { /* it does not listen yet, or never will again */
				dead = n > until;
				n -= !dead;
			}
			CHECK(!rdma_ack_cm_event(e));
			rdma_destroy_ep(id);
		}
	}
	CHECK(connections > VICTIMS && rejected > VICTIMS / 4);
}

int main(int argc, char **argv)
{
	unsigned seed = (unsigned)time(NULL);

	if (argc == 2 && !strcmp(argv[0], "asking"))
		asking((in_port_t)atoi(argv[1]));
	if (argc == 2 && !strcmp(argv[0], "answering"))
		answering((in_port_t)atoi(argv[1]));
	printf("      killed_connections: seed %u\n", seed);
	fflush(stdout);
	srand(seed);
	run(&(struct test){"who asks is killed", who_asks});
	run(&(struct test){"who answers is killed", who_answers});
	printf("ok    killed_connections: %u connections with %d victims\n", all.seen, VICTIMS);
	return 0;
}
