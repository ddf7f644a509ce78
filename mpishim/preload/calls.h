/*
 * The MPI calls that Pinwheel looks at, once. mpi.c makes the C, Fortran and
 * mpi_f08 wrapper of each from its row.
 *
 *   CALL(Name, name, number of arguments in C, what to know of them)
 *   DATA(...)   the same, for a call with counts: it has a form MPI_Name_c
 *   TEXT(...)   the same, for a call with strings: it is wrapped in C only
 *
 * Arguments are counted from 1 as in the MPI standard, which is the order in
 * every language; Fortran passes each by reference and adds ierror. 0, the
 * default, means that there is no such argument. TestRowsFitThePrototypes
 * compares the rows with the mpi.h of what is installed.
 *
 * No file of an MPI library is included: each argument of these calls is an
 * int, a pointer, a handle, an MPI_Aint or an MPI_Count, which the calling
 * conventions of x86-64 and AArch64 pass in one register or eight bytes of stack
 * each. So one build serves every MPI library whose handles are not larger than a
 * pointer.
 */
#define ONE(b, n, t) {.buf = b, .count = n, .type = t, .form = PW_COUNT}
#define EACH(b, n, t) {.buf = b, .count = n, .type = t, .form = PW_COUNT_PER_PEER}
#define VEC(b, n, d, t) {.buf = b, .count = n, .displs = d, .type = t, .form = PW_COUNTS}
#define VECW(b, n, d, t) {.buf = b, .count = n, .displs = d, .type = t, .form = PW_COUNTS_TYPES}
#define SUM(b, n, t) {.buf = b, .count = n, .type = t, .form = PW_COUNTS_SUM}
#define PARTS(b, p, n, t) {.buf = b, .count = n, .type = t, .displs = p, .form = PW_PARTITIONS}
#define MINE(b, n, t) {.buf = b, .count = n, .type = t, .form = PW_COUNTS_OWN}

#define SENDS(DATA, Name, name, what) \
	DATA(Name, name, 6, .op = what, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, .comm = 6)
#define ISENDS(DATA, Name, name, what) \
	DATA(Name, name, 7, .op = what, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, .comm = 6, .req = 7, \
		.creates = PW_REQUEST)
#define INITS(DATA, Name, name, what) \
	DATA(Name, name, 7, .op = what, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, .comm = 6, .req = 7, \
		.creates = PW_PERSISTENT)

#define PW_AFTER(n) PW_CAT(PW_AFTER_, n)
#define PW_AFTER_1 2
#define PW_AFTER_2 3
#define PW_AFTER_5 6
#define PW_AFTER_6 7
#define PW_AFTER_7 8
#define PW_AFTER_8 9
#define PW_AFTER_9 10
#define PW_AFTER_10 11
#define PW_AFTER_12 13
#define PW_CAT(a, b) PW_CAT_(a, b)
#define PW_CAT_(a, b) a##b

/*
 * A collective, its nonblocking form, where the request comes last, and its persistent form: an info and the request.
 * Open MPI 4 has that as MPIX_x_init.
 */
#define COLL(CALL, EXT, Name, name, n, ...) \
	CALL(Name, name, n, __VA_ARGS__) \
	CALL(I##name, i##name, PW_AFTER(n), __VA_ARGS__, .req = PW_AFTER(n), .creates = PW_REQUEST) \
	CALL(Name##_init, name##_init, PW_AFTER(PW_AFTER(n)), __VA_ARGS__, .req = PW_AFTER(PW_AFTER(n)), \
		.creates = PW_PERSISTENT) \
	EXT(Name##_init, PW_AFTER(PW_AFTER(n)))

/* A one-sided call and the form of it that makes a request: the window, then the request. */
#define SIDE(DATA, Name, name, n, ...) \
	DATA(Name, name, n, __VA_ARGS__) \
	DATA(R##name, r##name, PW_AFTER(n), __VA_ARGS__, .req = PW_AFTER(n), .creates = PW_REQUEST)

/*
 * Reads and writes of files: the buffer comes after the file, or after an offset. MPI moves their data from process
 * to process by calls of its own.
 */
#define FILE_DATA(DATA, name, n, side, b, ...) \
	DATA(File_##name, file_##name, n, .op = PW_FILE, .relays = 1, .side = b, ##__VA_ARGS__)
/* The form that makes a request has it in place of the status. */
#define FILES(DATA, name, side) \
	FILE_DATA(DATA, name, 5, side, ONE(2, 3, 4)) \
	FILE_DATA(DATA, i##name, 5, side, ONE(2, 3, 4), .req = 5, .creates = PW_REQUEST)
#define FILES_AT(DATA, name, side) \
	FILE_DATA(DATA, name, 6, side, ONE(3, 4, 5)) \
	FILE_DATA(DATA, i##name, 6, side, ONE(3, 4, 5), .req = 6, .creates = PW_REQUEST)
/* One that begins in one call and ends in another. */
#define FILE_SPLIT(CALL, DATA, name, n, side, b) \
	FILE_DATA(DATA, name##_begin, n, side, b) \
	CALL(File_##name##_end, file_##name##_end, 3, .op = PW_FILE, .relays = 1)
#define FILE_CALLS(CALL, DATA, verb, side) \
	FILES(DATA, verb, side) \
	FILES(DATA, verb##_all, side) \
	FILES(DATA, verb##_shared, side) \
	FILES_AT(DATA, verb##_at, side) \
	FILES_AT(DATA, verb##_at_all, side) \
	FILE_DATA(DATA, verb##_ordered, 5, side, ONE(2, 3, 4)) \
	FILE_SPLIT(CALL, DATA, verb##_all, 4, side, ONE(2, 3, 4)) \
	FILE_SPLIT(CALL, DATA, verb##_at_all, 5, side, ONE(3, 4, 5)) \
	FILE_SPLIT(CALL, DATA, verb##_ordered, 4, side, ONE(2, 3, 4))

/* Calls that make or free a handle. */
#define TYPE(CALL, Name, name, n, at, what) \
	CALL(Name, name, n, .op = PW_OTHER, .handle = at, .lifecycle = PW_TYPE_##what)
#define COMM(CALL, Name, name, n, at, what) \
	CALL(Name, name, n, .op = PW_OTHER, .handle = at, .lifecycle = PW_COMM_##what)
#define CHILD(CALL, Name, name, n, parent, at, ...) \
	CALL(Name, name, n, .op = PW_OTHER, .comm = parent, .handle = at, .lifecycle = PW_COMM_CREATED, ##__VA_ARGS__)
#define WIN(CALL, Name, name, n, parent, at) \
	CALL(Name, name, n, .op = PW_OTHER, .comm = parent, .handle = at, .lifecycle = PW_WIN_CREATED)

#define PW_CALLS(CALL, DATA, TEXT, EXT) \
	SENDS(DATA, Send, send, PW_SEND) \
	SENDS(DATA, Bsend, bsend, PW_BSEND) \
	SENDS(DATA, Ssend, ssend, PW_SSEND) \
	SENDS(DATA, Rsend, rsend, PW_RSEND) \
	ISENDS(DATA, Isend, isend, PW_ISEND) \
	ISENDS(DATA, Ibsend, ibsend, PW_BSEND) \
	ISENDS(DATA, Issend, issend, PW_SSEND) \
	ISENDS(DATA, Irsend, irsend, PW_ISEND) \
	INITS(DATA, Send_init, send_init, PW_ISEND) \
	INITS(DATA, Bsend_init, bsend_init, PW_BSEND) \
	INITS(DATA, Ssend_init, ssend_init, PW_SSEND) \
	INITS(DATA, Rsend_init, rsend_init, PW_ISEND) \
	DATA(Recv, recv, 7, .op = PW_RECV, .recv = ONE(1, 2, 3), .from = 4, .from_tag = 5, .comm = 6, .status = 7) \
	DATA(Irecv, irecv, 7, .op = PW_IRECV, .recv = ONE(1, 2, 3), .from = 4, .from_tag = 5, .comm = 6, .req = 7, \
		.creates = PW_REQUEST) \
	DATA(Recv_init, recv_init, 7, .op = PW_IRECV, .recv = ONE(1, 2, 3), .from = 4, .from_tag = 5, .comm = 6, \
		.req = 7, .creates = PW_PERSISTENT) \
	CALL(Psend_init, psend_init, 9, .op = PW_ISEND, .send = PARTS(1, 2, 3, 4), .peer = 5, .tag = 6, .comm = 7, \
		.req = 9, .creates = PW_PERSISTENT) \
	CALL(Precv_init, precv_init, 9, .op = PW_IRECV, .recv = PARTS(1, 2, 3, 4), .from = 5, .from_tag = 6, .comm = 7, \
		.req = 9, .creates = PW_PERSISTENT) \
	CALL(Pready, pready, 2, .op = PW_START, .ready = 2) \
	CALL(Pready_range, pready_range, 3, .op = PW_START, .ready = 3) \
	CALL(Pready_list, pready_list, 3, .op = PW_START, .ready = 3) \
	CALL(Parrived, parrived, 3, .op = PW_OTHER, .flag = 3) \
	DATA(Mrecv, mrecv, 5, .op = PW_RECV, .recv = ONE(1, 2, 3), .message = 4, .status = 5) \
	DATA(Imrecv, imrecv, 5, .op = PW_IRECV, .recv = ONE(1, 2, 3), .message = 4, .req = 5, .creates = PW_REQUEST) \
	CALL(Probe, probe, 4, .op = PW_PROBE, .from = 1, .from_tag = 2, .comm = 3, .status = 4) \
	CALL(Iprobe, iprobe, 5, .op = PW_PROBE, .from = 1, .from_tag = 2, .comm = 3, .flag = 4, .status = 5) \
	CALL(Mprobe, mprobe, 5, .op = PW_PROBE, .from = 1, .from_tag = 2, .comm = 3, .message = 4, \
		.creates = PW_MESSAGE, .status = 5) \
	CALL(Improbe, improbe, 6, .op = PW_PROBE, .from = 1, .from_tag = 2, .comm = 3, .flag = 4, .message = 5, \
		.creates = PW_MESSAGE, .status = 6) \
	DATA(Sendrecv, sendrecv, 12, .op = PW_SENDRECV, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, \
		.recv = ONE(6, 7, 8), .from = 9, .from_tag = 10, .comm = 11, .status = 12) \
	DATA(Isendrecv, isendrecv, 12, .op = PW_SENDRECV, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, \
		.recv = ONE(6, 7, 8), .from = 9, .from_tag = 10, .comm = 11, .req = 12, .creates = PW_REQUEST) \
	DATA(Sendrecv_replace, sendrecv_replace, 9, .op = PW_SENDRECV, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, \
		.recv = ONE(1, 2, 3), .from = 6, .from_tag = 7, .comm = 8, .status = 9) \
	DATA(Isendrecv_replace, isendrecv_replace, 9, .op = PW_SENDRECV, .send = ONE(1, 2, 3), .peer = 4, .tag = 5, \
		.recv = ONE(1, 2, 3), .from = 6, .from_tag = 7, .comm = 8, .req = 9, .creates = PW_REQUEST) \
	CALL(Start, start, 1, .op = PW_START, .req = 1, .completes = PW_STARTS) \
	CALL(Startall, startall, 2, .op = PW_START, .number = 1, .req = 2, .completes = PW_STARTS) \
	CALL(Request_free, request_free, 1, .op = PW_OTHER, .req = 1, .completes = PW_FREES) \
	CALL(Cancel, cancel, 1, .op = PW_OTHER, .req = 1, .completes = PW_CANCELS) \
	CALL(Wait, wait, 2, .op = PW_WAIT, .req = 1, .completes = PW_COMPLETES_ALL, .status = 2) \
	CALL(Waitall, waitall, 3, .op = PW_WAIT, .number = 1, .req = 2, .completes = PW_COMPLETES_ALL, .status = 3) \
	CALL(Waitany, waitany, 4, .op = PW_WAIT, .number = 1, .req = 2, .which = 3, .completes = PW_COMPLETES_ONE, \
		.status = 4) \
	CALL(Waitsome, waitsome, 5, .op = PW_WAIT, .number = 1, .req = 2, .some = 3, .which = 4, \
		.completes = PW_COMPLETES_SOME, .status = 5) \
	CALL(Test, test, 3, .op = PW_WAIT, .req = 1, .flag = 2, .completes = PW_COMPLETES_ALL, .status = 3) \
	CALL(Testall, testall, 4, .op = PW_WAIT, .number = 1, .req = 2, .flag = 3, .completes = PW_COMPLETES_ALL, \
		.status = 4) \
	CALL(Testany, testany, 5, .op = PW_WAIT, .number = 1, .req = 2, .which = 3, .flag = 4, \
		.completes = PW_COMPLETES_ONE, .status = 5) \
	CALL(Testsome, testsome, 5, .op = PW_WAIT, .number = 1, .req = 2, .some = 3, .which = 4, \
		.completes = PW_COMPLETES_SOME, .status = 5) \
	COLL(CALL, EXT, Barrier, barrier, 1, .op = PW_BARRIER, .comm = 1) \
	COLL(DATA, EXT, Bcast, bcast, 5, .op = PW_BCAST, .send = ONE(1, 2, 3), .peer = 4, .comm = 5) \
	COLL(DATA, EXT, Gather, gather, 8, .op = PW_GATHER, .send = ONE(1, 2, 3), .recv = EACH(4, 5, 6), .peer = 7, \
		.comm = 8, .rooted = PW_RECV_AT_ROOT) \
	COLL(DATA, EXT, Gatherv, gatherv, 9, .op = PW_GATHER, .send = ONE(1, 2, 3), .recv = VEC(4, 5, 6, 7), \
		.peer = 8, .comm = 9, .rooted = PW_RECV_AT_ROOT) \
	COLL(DATA, EXT, Scatter, scatter, 8, .op = PW_SCATTER, .send = EACH(1, 2, 3), .recv = ONE(4, 5, 6), .peer = 7, \
		.comm = 8, .rooted = PW_SEND_AT_ROOT) \
	COLL(DATA, EXT, Scatterv, scatterv, 9, .op = PW_SCATTER, .send = VEC(1, 2, 3, 4), .recv = ONE(5, 6, 7), \
		.peer = 8, .comm = 9, .rooted = PW_SEND_AT_ROOT) \
	COLL(DATA, EXT, Allgather, allgather, 7, .op = PW_ALLGATHER, .send = ONE(1, 2, 3), .recv = EACH(4, 5, 6), \
		.comm = 7) \
	COLL(DATA, EXT, Allgatherv, allgatherv, 8, .op = PW_ALLGATHER, .send = ONE(1, 2, 3), .recv = VEC(4, 5, 6, 7), \
		.comm = 8) \
	COLL(DATA, EXT, Alltoall, alltoall, 7, .op = PW_ALLTOALL, .send = EACH(1, 2, 3), .recv = EACH(4, 5, 6), \
		.comm = 7) \
	COLL(DATA, EXT, Alltoallv, alltoallv, 9, .op = PW_ALLTOALLV, .send = VEC(1, 2, 3, 4), .recv = VEC(5, 6, 7, 8), \
		.comm = 9) \
	COLL(DATA, EXT, Alltoallw, alltoallw, 9, .op = PW_ALLTOALLV, .send = VECW(1, 2, 3, 4), \
		.recv = VECW(5, 6, 7, 8), .comm = 9) \
	COLL(DATA, EXT, Reduce, reduce, 7, .op = PW_REDUCE, .send = ONE(1, 3, 4), .recv = ONE(2, 3, 4), .peer = 6, \
		.comm = 7, .rooted = PW_RECV_AT_ROOT) \
	COLL(DATA, EXT, Allreduce, allreduce, 6, .op = PW_ALLREDUCE, .send = ONE(1, 3, 4), .recv = ONE(2, 3, 4), \
		.comm = 6) \
	COLL(DATA, EXT, Scan, scan, 6, .op = PW_SCAN, .send = ONE(1, 3, 4), .recv = ONE(2, 3, 4), .comm = 6) \
	COLL(DATA, EXT, Exscan, exscan, 6, .op = PW_SCAN, .send = ONE(1, 3, 4), .recv = ONE(2, 3, 4), .comm = 6) \
	COLL(DATA, EXT, Reduce_scatter, reduce_scatter, 6, .op = PW_REDUCE_SCATTER, .send = SUM(1, 3, 4), \
		.recv = MINE(2, 3, 4), .comm = 6) \
	COLL(DATA, EXT, Reduce_scatter_block, reduce_scatter_block, 6, .op = PW_REDUCE_SCATTER, .send = EACH(1, 3, 4), \
		.recv = ONE(2, 3, 4), .comm = 6) \
	COLL(DATA, EXT, Neighbor_allgather, neighbor_allgather, 7, .op = PW_NEIGHBOR, .neighborhood = 1, \
		.send = ONE(1, 2, 3), .recv = EACH(4, 5, 6), .comm = 7) \
	COLL(DATA, EXT, Neighbor_allgatherv, neighbor_allgatherv, 8, .op = PW_NEIGHBOR, .neighborhood = 1, \
		.send = ONE(1, 2, 3), .recv = VEC(4, 5, 6, 7), .comm = 8) \
	COLL(DATA, EXT, Neighbor_alltoall, neighbor_alltoall, 7, .op = PW_NEIGHBOR, .neighborhood = 1, \
		.send = EACH(1, 2, 3), .recv = EACH(4, 5, 6), .comm = 7) \
	COLL(DATA, EXT, Neighbor_alltoallv, neighbor_alltoallv, 9, .op = PW_NEIGHBOR, .neighborhood = 1, \
		.send = VEC(1, 2, 3, 4), .recv = VEC(5, 6, 7, 8), .comm = 9) \
	COLL(DATA, EXT, Neighbor_alltoallw, neighbor_alltoallw, 9, .op = PW_NEIGHBOR, .neighborhood = 1, .aints = 1, \
		.send = VECW(1, 2, 3, 4), .recv = VECW(5, 6, 7, 8), .comm = 9) \
	SIDE(DATA, Put, put, 8, .send = ONE(1, 2, 3), .op = PW_PUT, .peer = 4, .win = 8) \
	SIDE(DATA, Get, get, 8, .recv = ONE(1, 2, 3), .op = PW_GET, .peer = 4, .win = 8) \
	SIDE(DATA, Accumulate, accumulate, 9, .send = ONE(1, 2, 3), .op = PW_ACCUMULATE, .peer = 4, .win = 9) \
	SIDE(DATA, Get_accumulate, get_accumulate, 12, .send = ONE(1, 2, 3), .recv = ONE(4, 5, 6), \
		.op = PW_ACCUMULATE, .peer = 7, .win = 12) \
	CALL(Fetch_and_op, fetch_and_op, 7, .op = PW_ACCUMULATE, .peer = 4, .win = 7) \
	CALL(Compare_and_swap, compare_and_swap, 7, .op = PW_ACCUMULATE, .peer = 5, .win = 7) \
	CALL(Win_fence, win_fence, 2, .op = PW_BARRIER, .win = 2, .completes = PW_COMPLETES_RMA) \
	CALL(Win_complete, win_complete, 1, .op = PW_OTHER, .win = 1, .completes = PW_COMPLETES_RMA) \
	CALL(Win_unlock, win_unlock, 2, .op = PW_OTHER, .peer = 1, .win = 2, .completes = PW_COMPLETES_RMA) \
	CALL(Win_unlock_all, win_unlock_all, 1, .op = PW_OTHER, .win = 1, .completes = PW_COMPLETES_RMA) \
	CALL(Win_flush, win_flush, 2, .op = PW_OTHER, .peer = 1, .win = 2, .completes = PW_COMPLETES_RMA) \
	CALL(Win_flush_all, win_flush_all, 1, .op = PW_OTHER, .win = 1, .completes = PW_COMPLETES_RMA) \
	CALL(Win_flush_local, win_flush_local, 2, .op = PW_OTHER, .peer = 1, .win = 2, .completes = PW_COMPLETES_RMA) \
	CALL(Win_flush_local_all, win_flush_local_all, 1, .op = PW_OTHER, .win = 1, .completes = PW_COMPLETES_RMA) \
	FILE_CALLS(CALL, DATA, read, recv) \
	FILE_CALLS(CALL, DATA, write, send) \
	TYPE(CALL, Type_commit, type_commit, 1, 1, CREATED) \
	TYPE(CALL, Type_dup, type_dup, 2, 2, CREATED) \
	TYPE(CALL, Type_free, type_free, 1, 1, FREED) \
	CHILD(CALL, Comm_dup, comm_dup, 2, 1, 2) \
	CHILD(CALL, Comm_dup_with_info, comm_dup_with_info, 3, 1, 3) \
	CHILD(CALL, Comm_split, comm_split, 4, 1, 4) \
	CHILD(CALL, Comm_split_type, comm_split_type, 5, 1, 5) \
	CHILD(CALL, Comm_create, comm_create, 3, 1, 3) \
	CHILD(CALL, Comm_create_group, comm_create_group, 4, 1, 4, .by_group = 1) \
	COMM(TEXT, Comm_create_from_group, comm_create_from_group, 5, 5, CREATED) \
	CHILD(CALL, Cart_create, cart_create, 6, 1, 6) \
	CHILD(CALL, Cart_sub, cart_sub, 3, 1, 3) \
	CHILD(CALL, Graph_create, graph_create, 6, 1, 6) \
	CHILD(CALL, Dist_graph_create, dist_graph_create, 9, 1, 9) \
	CHILD(CALL, Dist_graph_create_adjacent, dist_graph_create_adjacent, 10, 1, 10) \
	COMM(CALL, Intercomm_create, intercomm_create, 6, 6, CREATED) \
	COMM(TEXT, Intercomm_create_from_groups, intercomm_create_from_groups, 8, 8, CREATED) \
	CHILD(CALL, Intercomm_merge, intercomm_merge, 3, 1, 3) \
	CHILD(TEXT, Comm_spawn, comm_spawn, 8, 6, 7) \
	CHILD(TEXT, Comm_spawn_multiple, comm_spawn_multiple, 9, 7, 8) \
	COMM(TEXT, Comm_accept, comm_accept, 5, 5, CREATED) \
	COMM(TEXT, Comm_connect, comm_connect, 5, 5, CREATED) \
	COMM(CALL, Comm_join, comm_join, 2, 2, CREATED) \
	COMM(CALL, Comm_get_parent, comm_get_parent, 1, 1, CREATED) \
	COMM(CALL, Comm_free, comm_free, 1, 1, FREED) \
	COMM(CALL, Comm_disconnect, comm_disconnect, 1, 1, FREED) \
	CALL(Comm_idup, comm_idup, 3, .op = PW_OTHER, .comm = 1, .handle = 2, .lifecycle = PW_COMM_STARTED, .req = 3, \
		.creates = PW_REQUEST) \
	CALL(Comm_idup_with_info, comm_idup_with_info, 4, .op = PW_OTHER, .comm = 1, .handle = 3, \
		.lifecycle = PW_COMM_STARTED, .req = 4, .creates = PW_REQUEST) \
	WIN(DATA, Win_create, win_create, 6, 5, 6) \
	WIN(DATA, Win_allocate, win_allocate, 6, 4, 6) \
	WIN(DATA, Win_allocate_shared, win_allocate_shared, 6, 4, 6) \
	WIN(CALL, Win_create_dynamic, win_create_dynamic, 3, 2, 3) \
	CALL(Win_free, win_free, 1, .op = PW_OTHER, .handle = 1, .lifecycle = PW_WIN_FREED)
