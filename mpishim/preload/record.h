/* Recording (PINWHEEL_RECORD): the calls of the recorded thread, as the wrappers tell of them. */
#ifndef PINWHEEL_RECORD_H
#define PINWHEEL_RECORD_H

#include "call.h"

void pw_record_begin(struct pw_call *c);
void pw_record_end(struct pw_call *c);
void pw_record_left_out(const struct pw_call *c); /* counts a call of a thread that is not recorded */
void pw_record_created(const struct pw_call *c);  /* the call has created a communicator or window */

#endif
