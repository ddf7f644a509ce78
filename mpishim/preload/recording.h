/* Recording: its beginning and its end in a process. */
#ifndef PINWHEEL_RECORDING_H
#define PINWHEEL_RECORDING_H

#include "process.h"

void pw_record_start(struct pw_thread *t); /* at the end of MPI_Init */
void pw_record_finish(void);               /* at the beginning of MPI_Finalize */
void pw_record_exit(void);                 /* where the process ends without MPI_Finalize */

#endif
