/* Recording: its beginning and its end in a process. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "mpilib.h"
#include "record_comm.h"
#include "record_ring.h"
#include "recording.h"

void pw_record_start(struct pw_thread *t)
{
	if (!pw.recorder || __atomic_load_n(&pw.recorder->failed, __ATOMIC_RELAXED))
		return;
	pw_record_clock_start();
	pw.recorder->on = 1;
	if (!pw_mpi.by_session)
		pw_comm_id(pw_comm_find(pw_mpi.comm_world, 0)); /* number 0, to which calls without a communicator belong */
	__atomic_store_n(&pw_recorded, t, __ATOMIC_RELAXED);
}

/* How long the end of a process may be held up by its trace. */
#define END_MS 2000

void pw_record_exit(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	if (!pw_is_recording() || pw_is_disabled() || !pw.recorder->on)
		return;
	__atomic_store_n(&pw_recorded, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&pw.recorder->end, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < END_MS && !__atomic_load_n(&pw.recorder->ended, __ATOMIC_ACQUIRE); i++)
		nanosleep(&ms, NULL);
}

void pw_record_finish(void)
{
	struct pw_record r;

	if (!pw_is_recording())
		return;
	memset(&r, 0, sizeof r);
	pw_record_now(&r.end_ns, &r.end_cpu_ns);
	r.start_ns = r.end_ns;
	r.start_cpu_ns = r.end_cpu_ns;
	r.op = PW_FINALIZE;
	r.peer = PW_NO_PEER;
	pw_record_emit(&r);
	__atomic_store_n(&pw_recorded, NULL, __ATOMIC_RELAXED);
}
