/* Kinds of calls, numbered as trace.Op where it has the kind; what it lacks comes last, also at the number of OpUnmap,
 * which is no call. */
#ifndef PINWHEEL_OPS_H
#define PINWHEEL_OPS_H

enum pw_op {
	PW_NONE,
	PW_SEND,
	PW_SSEND,
	PW_RSEND,
	PW_ISEND,
	PW_RECV,
	PW_IRECV,
	PW_WAIT,
	PW_SENDRECV,
	PW_BCAST,
	PW_REDUCE,
	PW_ALLREDUCE,
	PW_ALLGATHER,
	PW_ALLTOALL,
	PW_ALLTOALLV,
	PW_BARRIER,
	PW_FINALIZE,
	PW_BSEND,
	PW_GATHER,
	PW_SCATTER,
	PW_SCAN,
	PW_REDUCE_SCATTER,
	PW_NEIGHBOR, /* a collective of neighbours */
	PW_PROBE,
	PW_PUT,
	PW_GET,
	PW_ACCUMULATE,
	PW_FREE,
	PW_START, /* of a persistent request */
	PW_FILE,  /* reads or writes a file */
	PW_OTHER,
};

#endif
