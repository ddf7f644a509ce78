/* Recording: the start and the completion of operations that outlast a call. */
#ifndef PINWHEEL_RECORD_WAIT_H
#define PINWHEEL_RECORD_WAIT_H

#include "call.h"

void pw_record_take(struct pw_call *c);	    /* before a call: takes the requests that it may complete */
void pw_record_put_back(struct pw_call *c); /* after a call: puts back those that it has not completed */
/* records the completions; 1 if the call does nothing else */
int pw_record_ended(struct pw_call *c, struct pw_record *r);

#endif
