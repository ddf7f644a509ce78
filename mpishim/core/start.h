/* The start and the end of the Go side; see start.c. */
#ifndef PINWHEEL_START_H
#define PINWHEEL_START_H

#include "process.h"

void pw_start(void); /* loads and starts the Go side, once; returns when that is ready or has given up */
void pw_stop(void);  /* call it before the transport is closed */

#endif
