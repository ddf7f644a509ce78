/*
 * A peer that is killed at a random moment of registering, writing and sending: every receive of ours
 * completes exactly once, the bytes are right, our queue pairs work, and nothing of the peer stays.
 */
#include "check.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define RECEIVES 32
#define PIECE 4096
#define ROUNDS 100

struct hello {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static void swap(int sock, const struct hello *mine, struct hello *theirs)
{
	CHECK(write(sock, mine, sizeof(*mine)) == sizeof(*mine));
	CHECK(read(sock, theirs, sizeof(*theirs)) == sizeof(*theirs));
}

static void fill(char *p, uint32_t seq)
{
	for (size_t i = 0; i < PIECE / sizeof(uint32_t); i++)
		((uint32_t *)p)[i] = seq;
}

static int victim(int sock)
{
	struct end e = {0};
	struct region l;
	struct hello mine, theirs;

	make_end(&e, IBV_QPT_RC);
	l = region(e.pd, PIECE, ALL_RIGHTS);
	mine = (struct hello){e.qp->qp_num, l.mr->rkey, (uintptr_t)l.p};
	swap(sock, &mine, &theirs);
	to_init(e.qp);
	to_rts(e.qp, theirs.qpn, 14, 7, 7);
	swap(sock, &mine, &theirs);
	for (uint32_t seq = 1;; seq++) {
		struct region big = region(e.pd, seq % 16 ? 4096 : 1 << 21, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_mr remote = {.rkey = theirs.rkey};

		fill(l.p, seq);
		CHECK(!post(e.qp, IBV_WR_RDMA_WRITE, 1, l, PIECE, (struct region){(char *)(uintptr_t)theirs.addr, &remote}));
		CHECK(!post(e.qp, IBV_WR_SEND, 2, l, PIECE, (struct region){0}));
		expect(e.cq, 1, IBV_WC_SUCCESS);
		expect(e.cq, 2, IBV_WC_SUCCESS);
		CHECK(!ibv_dereg_mr(big.mr));
		munmap(big.p, seq % 16 ? 4096 : 1 << 21);
	}
}

static unsigned round_with(struct end *e, struct region r, unsigned us)
{
	unsigned posted = 0, ended = 0, good = 0;
	struct hello mine = {e->qp->qp_num, r.mr->rkey, (uintptr_t)(r.p + RECEIVES * PIECE)}, theirs;
	struct ibv_mr remote = {0};
	struct ibv_wc wc;
	struct timespec t0, t;
	int sock[2], killed = 0;
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	if (!(child = fork())) {
		char fd[16];

		snprintf(fd, sizeof(fd), "%d", sock[1]);
		execl("/proc/self/exe", "victim", fd, NULL);
		_exit(1);
	}
	close(sock[1]);
	to_init(e->qp);
	for (; posted < RECEIVES; posted++)
		CHECK(!post_receive(e, posted, (struct region){r.p + posted * PIECE, r.mr}, PIECE));
	swap(sock[0], &mine, &theirs);
	to_rts(e->qp, theirs.qpn, 10, 3, 7);
	swap(sock[0], &mine, &theirs);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	while (ended < posted) {
		int n = ibv_poll_cq(e->cq, 1, &wc);

		CHECK(n >= 0);
		if (n && ++ended && wc.status == IBV_WC_SUCCESS) {
			uint32_t *p = (uint32_t *)(r.p + wc.wr_id * PIECE);

			CHECK(wc.byte_len == PIECE && p[0] == ++good);
			for (size_t i = 1; i < PIECE / sizeof(*p); i++)
				CHECK(p[i] == p[0]);
			if (!killed) {
				CHECK(!post_receive(e, wc.wr_id, (struct region){(char *)p, r.mr}, PIECE));
				posted++;
			}
		} else if (n) {
			CHECK(killed && wc.status == IBV_WC_WR_FLUSH_ERR);
		}
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (!killed && (t.tv_sec - t0.tv_sec) * 1000000 + (t.tv_nsec - t0.tv_nsec) / 1000 >= us) {
			kill(child, SIGKILL);
			CHECK(waitpid(child, NULL, 0) == child);
			killed = 1;
			remote = (struct ibv_mr){.rkey = theirs.rkey};
			CHECK(!ibv_modify_qp(e->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
		}
		CHECK(t.tv_sec - t0.tv_sec < 30);
	}
	CHECK(!ibv_poll_cq(e->cq, 1, &wc));
	CHECK(!ibv_modify_qp(e->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	to_init(e->qp);
	to_rts(e->qp, theirs.qpn, 10, 3, 7);
	CHECK(!post(e->qp, IBV_WR_RDMA_WRITE, 7, r, PIECE, (struct region){(char *)(uintptr_t)theirs.addr, &remote}));
	expect(e->cq, 7, IBV_WC_RETRY_EXC_ERR);
	CHECK(!ibv_modify_qp(e->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	close(sock[0]);
	return good;
}

int main(int argc, char **argv)
{
	struct end e = {0}, a = {0}, b = {0};
	struct region r, l;
	unsigned good = 0, seed = (unsigned)time(NULL);
	struct stat st;

	if (argc == 2 && !strcmp(argv[0], "victim"))
		return victim(atoi(argv[1]));
	printf("      killed: seed %u\n", seed);
	srand(seed);
	make_end(&e, IBV_QPT_RC);
	r = region(e.pd, (RECEIVES + 1) * PIECE, ALL_RIGHTS);
	for (int i = 0; i < ROUNDS; i++)
		good += round_with(&e, r, (unsigned)rand() % 20000);
	CHECK(good > ROUNDS); /* they did something before they died */
	make_end(&a, IBV_QPT_RC);
	make_end(&b, IBV_QPT_RC);
	connect_ends(&a, &b);
	l = region(a.pd, PIECE, 0);
	memset(l.p, 'x', PIECE);
	ibv_dereg_mr(r.mr);
	CHECK((r.mr = ibv_reg_mr(b.pd, r.p, PIECE, ALL_RIGHTS)));
	CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, 1, l, PIECE, r));
	expect(a.cq, 1, IBV_WC_SUCCESS);
	CHECK(r.p[0] == 'x' && r.p[PIECE - 1] == 'x');
	ibv_dereg_mr(l.mr), ibv_dereg_mr(r.mr);
	end_end(&a), end_end(&b), end_end(&e);
	CHECK(status_kb("VmPin") == 0);
	CHECK(stat("/dev/shm/softverbs", &st) && errno == ENOENT);
	printf("ok    killed: %u messages from %d victims\n", good, ROUNDS);
	return 0;
}
