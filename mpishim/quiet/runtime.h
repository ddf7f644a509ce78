/* What of the Go runtime's own tables has to be other than it is. */
#ifndef PINWHEEL_QUIET_RUNTIME_H
#define PINWHEEL_QUIET_RUNTIME_H

/* Call it before the runtime starts. Changes nothing and returns -1 where the tables are not as expected. */
int pw_quiet_change_runtime(void);

#endif
