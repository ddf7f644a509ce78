/*
 * A transport that links Pinwheel: large messages by RDMA write, over libibverbs.
 *
 * Both ends are in this process, on two connected queue pairs of one device. A
 * message takes what a rendezvous protocol takes: the receiver makes its buffer
 * writable and says where it is, the sender makes its own readable and writes, the
 * completion ends the use of both. "Makes" is pinwheel_acquire, "ends the use"
 * pinwheel_release; there is no other call to Pinwheel on the path.
 *
 *	cc -O2 -fno-omit-frame-pointer $(pkg-config --cflags pinwheel) transport.c $(pkg-config --libs pinwheel) -libverbs
 *	./transport [STEPS [COMPUTE_MS [DEVICE]]]
 *
 * The program exchanges buffers of several sizes in a pattern that repeats, computes
 * in between, verifies all data, and says who registered and what was pinned.
 */
#define _GNU_SOURCE
#include <pinwheel_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORT 1
#define BUFFERS 6

static void die(const char *what, int error)
{
	fprintf(stderr, "transport: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

/* ---- the transport ---- */

struct transport {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
	struct pinwheel *pw;
	struct pinwheel_domain *domain;
};

/* One message under way. The uses stay where they are until they are released. */
struct message {
	struct pinwheel_use source, target;
};

/* An address by which the device reaches itself: that of IPv4, if it has one (RoCE). */
static uint8_t own_gid(struct transport *t, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	for (int i = 0; i < 16 && !ibv_query_gid(t->context, PORT, i, gid); i++)
		if (!memcmp(gid, mapped, sizeof mapped))
			return (uint8_t)i;
	if (ibv_query_gid(t->context, PORT, 0, gid))
		die("ibv_query_gid", errno);
	return 0;
}

static struct ibv_qp *make_qp(struct transport *t)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t->cq,
		.recv_cq = t->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(t->pd, &init);

	if (!qp)
		die("ibv_create_qp", errno);
	return qp;
}

/* Takes a queue pair through its states until it can send to the other. */
static void connect_qp(struct transport *t, struct ibv_qp *qp, struct ibv_qp *other)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	int rc = ibv_query_port(t->context, PORT, &port);

	if (!rc)
		rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = port.active_mtu;
	a.dest_qp_num = other->qp_num;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.dlid = port.lid;
	a.ah_attr.port_num = PORT;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.sgid_index = own_gid(t, &a.ah_attr.grh.dgid);
		a.ah_attr.grh.hop_limit = 1;
	}
	if (!rc)
		rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 18;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	if (!rc)
		rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						   IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		die("connecting a queue pair", rc);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	for (int i = 0; list && list[i] && !c; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			c = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!c)
		die(name ? name : "no RDMA device", ENODEV);
	return c;
}

static void transport_open(struct transport *t, const char *device)
{
	const struct pinwheel_options options = {.size = sizeof options, .name = "example transport"};
	int rc;

	t->context = open_device(device);
	t->pd = ibv_alloc_pd(t->context);
	t->cq = ibv_create_cq(t->context, 16, NULL, NULL, 0);
	if (!t->pd || !t->cq)
		die("opening the device", errno);
	t->from = make_qp(t);
	t->to = make_qp(t);
	connect_qp(t, t->from, t->to);
	connect_qp(t, t->to, t->from);

	rc = pinwheel_init(&options, &t->pw);
	if (!rc)
		rc = pinwheel_domain_open_verbs(t->pw, t->pd, &t->domain);
	if (rc)
		die("pinwheel", rc);
}

/* Pinwheel before the protection domain: registrations are left in it. */
static void transport_close(struct transport *t)
{
	int rc = pinwheel_domain_close(t->domain);

	if (!rc)
		rc = pinwheel_fini(t->pw);
	if (rc)
		die("closing pinwheel", rc);
	if (ibv_destroy_qp(t->from) || ibv_destroy_qp(t->to) || ibv_destroy_cq(t->cq) || (rc = ibv_dealloc_pd(t->pd)) ||
	    ibv_close_device(t->context))
		die("closing the device", rc ? rc : errno);
}

static void begin_message(struct transport *t, struct message *m, char *target, const char *source, size_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)source, .length = (uint32_t)bytes};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	int rc;

	/* The receiver, and then the sender. Site 0: who called us tells one pattern from another. */
	rc = pinwheel_acquire(t->domain, target, bytes, PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_WRITE, 0, &m->target);
	if (rc)
		die("acquiring the target", rc);
	rc = pinwheel_acquire(t->domain, source, bytes, 0, 0, &m->source);
	if (rc)
		die("acquiring the source", rc);
	sge.lkey = m->source.lkey;
	wr.wr_id = (uintptr_t)m;
	wr.wr.rdma.remote_addr = (uintptr_t)target; /* the address itself, whatever else is registered with it */
	wr.wr.rdma.rkey = m->target.rkey;
	rc = ibv_post_send(t->from, &wr, &bad);
	if (rc)
		die("ibv_post_send", rc);
}

/* Waits for one message and ends the use of its memory. */
static void end_message(struct transport *t)
{
	struct ibv_wc wc;
	struct message *m;
	int n;

	while (!(n = ibv_poll_cq(t->cq, 1, &wc)))
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "transport: a message failed: %s\n", n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
		exit(1);
	}
	m = (struct message *)(uintptr_t)wc.wr_id;
	pinwheel_release(&m->source);
	pinwheel_release(&m->target);
}

/* ---- a program over it ---- */

static uint64_t word(int step, int buffer, size_t i) { return ((uint64_t)step << 40 | (uint64_t)buffer << 32 | i) * 0x9e3779b97f4a7c15ull; }

static void fill(uint64_t *at, size_t bytes, int step, int buffer)
{
	for (size_t i = 0; i < bytes / 8; i++)
		at[i] = word(step, buffer, i);
}

static long errors_in(const uint64_t *at, size_t bytes, int step, int buffer)
{
	long n = 0;

	for (size_t i = 0; i < bytes / 8; i++)
		n += at[i] != word(step, buffer, i);
	return n;
}

/* What the kernel holds for RDMA in this process, whoever registered it. */
static double pinned_mb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return (double)kb / 1024;
}

static void compute(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 100, compute_ms = argc > 2 ? atoi(argv[2]) : 20;
	struct transport t = {0};
	char *out[BUFFERS], *in[BUFFERS];
	size_t bytes[BUFFERS], total = 0;
	double pinned = 0, before;
	long errors = 0;
	struct pinwheel_stats s = {.size = sizeof s};

	transport_open(&t, argc > 3 ? argv[3] : NULL);
	for (int b = 0; b < BUFFERS; b++) {
		bytes[b] = ((size_t)128 << 10) * (size_t)(b + 1);
		out[b] = malloc(bytes[b]);
		in[b] = malloc(bytes[b]);
		if (!out[b] || !in[b])
			die("malloc", ENOMEM);
		total += 2 * bytes[b];
	}
	before = pinned_mb();
	for (int step = 0; step < steps; step++) {
		struct message m[2];

		/* Two messages at a time, of buffers that vary from step to step. */
		for (int k = 0; k < 2; k++) {
			int b = (step * 2 + k) % BUFFERS;

			fill((uint64_t *)out[b], bytes[b], step, b);
			begin_message(&t, &m[k], in[b], out[b], bytes[b]);
		}
		end_message(&t);
		end_message(&t);
		for (int k = 0; k < 2; k++) {
			int b = (step * 2 + k) % BUFFERS;

			errors += errors_in((uint64_t *)in[b], bytes[b], step, b);
		}
		compute(compute_ms / 2);
		pinned += pinned_mb() - before;
		compute(compute_ms - compute_ms / 2);
	}
	if (pinwheel_stats(t.pw, t.domain, &s))
		die("pinwheel_stats", EINVAL);
	printf("%d messages of %.1f MB of buffers: %lu uses hit, %lu waited\n", 2 * steps, (double)total / (1 << 20), s.hits, s.waited);
	printf("registrations by the transport's thread: %lu first, %lu late, %lu for one use; by the helper thread: %lu\n",
	       s.first, s.late, s.plain, s.helper_registrations);
	printf("pinned while computing: %.2f MB on average\n", pinned / steps);
	for (int b = 0; b < BUFFERS; b++) {
		free(out[b]);
		free(in[b]);
	}
	transport_close(&t);
	printf(errors ? "DATA WRONG: %ld words\n" : "data right\n", errors);
	return errors != 0;
}
