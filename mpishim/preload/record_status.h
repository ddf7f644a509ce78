/* Recording: reads a status, whose layout depends on the MPI library. */
#ifndef PINWHEEL_RECORD_STATUS_H
#define PINWHEEL_RECORD_STATUS_H

#include "call.h"

int pw_status_is_ignored(const struct pw_call *c);
/* passes ours in place of MPI_STATUS_IGNORE; 0 if there is no memory */
int pw_status_provide(struct pw_call *c, int64_t n);
const int *pw_status_at(const struct pw_call *c, int64_t i);
int pw_status_source(const int *status);
int pw_status_tag(const int *status);
int pw_status_is_cancelled(const int *status);

#endif
