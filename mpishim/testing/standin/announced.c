/*
 * Which memory is known to be in use after a call that was given it: this plays the transport, and
 * registers the memory between the MPI calls. Linked with the stand-in of libibverbs, which knows its own
 * registrations (another one is managed), and with uses_verbs.c. It prints "yes" for each call that is right.
 */
#include "../../../lab/testbed/programs/check.h"
#include "../../../lab/testbed/programs/mpix.h"

#define WORDS 4096 /* 32 KiB, above the threshold */

void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access);
int ibv_dereg_mr(void *mr);
int standin_owns(void *mr);

static struct {
	void *context;
} pd = {&pd};

static int is_announced(void *addr, size_t bytes)
{
	void *mr = ibv_reg_mr(&pd, addr, bytes, 1);
	int managed = mr && !standin_owns(mr);

	if (mr)
		ibv_dereg_mr(mr);
	return managed;
}

static void expect(int announced, const char *what, void *addr, size_t bytes)
{
	printf("%d %s: %s\n", check_rank, what, is_announced(addr, bytes) == announced ? "yes" : "NO");
}

#define PAGE 4096

/* Memory that no call was ever given. */
static uint64_t *fresh(size_t words) { return check_alloc(words); }

static MPI_Comm comm;
static int me, other;

static void exchange(void *out, void *in, int count, MPI_Datatype type)
{
	MPI_Sendrecv(out, count, type, other, 0, in, count, type, other, 0, comm, MPI_STATUS_IGNORE);
}

static void datatypes(void)
{
	MPI_Datatype small, large, again, absolute;
	uint64_t *a = fresh(4 * WORDS), *b = fresh(4 * WORDS);
	MPI_Aint at;
	int reused = 0, length = WORDS;
	char *page;

	expect(0, "nothing", a, WORDS * 8);
	exchange(a, b, WORDS, MPI_UINT64_T);
	expect(1, "predefined", a, WORDS * 8);
	expect(1, "predefined, received", b, WORDS * 8);
	expect(0, "beside it", a + WORDS, WORDS * 8);

	a = fresh(4 * WORDS), b = fresh(4 * WORDS);
	exchange(a, b, WORDS, MPI_DOUBLE_INT);
	expect(1, "a pair", a, WORDS * sizeof(struct { double d; int i; }));

	/* The handle of one that was freed comes again, as something larger. */
	a = fresh(4 * WORDS), b = fresh(4 * WORDS);
	for (int i = 0; i < 100 && !reused; i++) {
		MPI_Type_contiguous(1, MPI_UINT64_T, &small);
		MPI_Type_commit(&small);
		exchange(a, b, 1, small);
		again = small;
		MPI_Type_free(&small);
		MPI_Type_vector(WORDS, 1, 3, MPI_UINT64_T, &large);
		MPI_Type_commit(&large);
		reused = large == again;
		if (!reused)
			MPI_Type_free(&large);
	}
	if (!reused) {
		MPI_Type_vector(WORDS, 1, 3, MPI_UINT64_T, &large);
		MPI_Type_commit(&large);
	}
	exchange(a, b, 1, large);
	expect(1, "derived", a, (3 * WORDS - 2) * 8);
	MPI_Type_dup(large, &again);
	MPI_Type_free(&large);
	a = fresh(4 * WORDS), b = fresh(4 * WORDS);
	exchange(a, b, 1, again);
	expect(1, "a duplicate", b, (3 * WORDS - 2) * 8);
	MPI_Type_free(&again);

	a = fresh(4 * WORDS);
	MPI_Get_address(a, &at);
	MPI_Type_create_hindexed(1, &length, &at, MPI_UINT64_T, &absolute);
	MPI_Type_commit(&absolute);
	MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, comm);
	expect(1, "from MPI_BOTTOM", a, WORDS * 8);
	MPI_Type_free(&absolute);

	/* A transport registers what is long in chunks, the first of which begins with a page. */
	a = fresh(4 * WORDS), b = fresh(4 * WORDS);
	page = (char *)(((uintptr_t)a + 2 * PAGE) & -(uintptr_t)PAGE);
	exchange(page + 13, b, WORDS * 8, MPI_BYTE);
	expect(1, "an odd start, from its page", page, PAGE + WORDS * 8);
	expect(0, "an odd start, from the page before", page - PAGE, PAGE + WORDS * 8);
	expect(0, "an odd start, to the page after", page + PAGE, PAGE + WORDS * 8);

	a = fresh(WORDS);
	MPI_Send(a, WORDS, MPI_UINT64_T, MPI_PROC_NULL, 0, comm);
	expect(0, "to MPI_PROC_NULL", a, WORDS * 8);
	MPI_Sendrecv_replace(a, WORDS, MPI_UINT64_T, me ? 0 : MPI_PROC_NULL, 0, me ? MPI_PROC_NULL : 1, 0, comm,
			     MPI_STATUS_IGNORE);
	expect(1, "replaced, one way", a, WORDS * 8);
}

static void collectives(const char *name)
{
	int counts[2] = {WORDS, WORDS}, places[2] = {0, WORDS};
	uint64_t *a = fresh(2 * WORDS), *b = fresh(2 * WORDS);
	char what[64];

	snprintf(what, sizeof what, "alltoallv, %s", name);
	MPI_Alltoallv(a, counts, places, MPI_UINT64_T, b, counts, places, MPI_UINT64_T, comm);
	expect(1, what, a, 2 * WORDS * 8);
	expect(1, what, b, 2 * WORDS * 8);

	b = fresh(2 * WORDS);
	snprintf(what, sizeof what, "alltoall in place, %s", name);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, WORDS, MPI_UINT64_T, comm);
	expect(1, what, b, 2 * WORDS * 8);

	a = fresh(WORDS), b = fresh(2 * WORDS);
	snprintf(what, sizeof what, "gather, %s", name);
	MPI_Gather(a, WORDS, MPI_UINT64_T, b, WORDS, MPI_UINT64_T, 1, comm);
	expect(1, what, a, WORDS * 8);
	expect(me == 1, what, b, 2 * WORDS * 8);

	b = fresh(2 * WORDS);
	snprintf(what, sizeof what, "reduce_scatter in place, %s", name);
	MPI_Reduce_scatter(MPI_IN_PLACE, b, counts, MPI_UINT64_T, MPI_SUM, comm);
	expect(1, what, b, 2 * WORDS * 8);
}

static void planned(void)
{
	uint64_t *a = fresh(WORDS), *b = fresh(2 * WORDS);
	MPI_Request plan;

	MPI_Allgather_init(a, WORDS, MPI_UINT64_T, b, WORDS, MPI_UINT64_T, comm, MPI_INFO_NULL, &plan);
	MPI_Start(&plan);
	MPI_Wait(&plan, MPI_STATUS_IGNORE);
	MPI_Request_free(&plan);
	expect(1, "planned, sent", a, WORDS * 8);
	expect(1, "planned, received", b, 2 * WORDS * 8);
}

int main(int argc, char **argv)
{
	MPI_Comm alone, old = MPI_COMM_NULL;
	MPI_Request q;

	check_begin(&argc, &argv);
	me = check_rank;
	other = 1 - me;
	comm = MPI_COMM_WORLD;
	datatypes();
	collectives("of the world");
	planned();
	/* The handle of one with a single member comes again. */
	for (int i = 0; i < 100 && comm != old; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, me, 0, &alone);
		MPI_Barrier(alone);
		old = alone;
		MPI_Comm_disconnect(&alone);
		if (comm != MPI_COMM_WORLD)
			MPI_Comm_free(&comm);
		MPI_Comm_split(MPI_COMM_WORLD, 0, me, &comm);
	}
	collectives("split");
	MPI_Comm_free(&comm);
	/* It is no communicator before its request has completed; nobody sees what that makes of it. */
	MPI_Comm_idup(MPI_COMM_WORLD, &comm, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	collectives("idup");
	MPI_Comm_free(&comm);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
