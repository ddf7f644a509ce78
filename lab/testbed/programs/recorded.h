/* The parts of recorded.c: one kind of thing each, on two ranks. */
#include <mpi.h>

#define N 8192 /* doubles: above every threshold */
extern double a[4 * N], b[4 * N];
extern int me, other;

static inline void wait_for(MPI_Request *q) { MPI_Wait(q, MPI_STATUS_IGNORE); }

/* recorded_comms.c */
void communicators(void);
void connected(void);

/* recorded_requests.c */
void persistent(void);
void cancelled(void);
void buffered(void);
void unblocked(void);
void any(void);
