#ifndef PINWHEEL_QUIET_H
#define PINWHEEL_QUIET_H

void pw_quiet_put_back_limit(void);
int pw_quiet_reached(void);

#endif
