/* The transport's registration caches, which "pinwheel run" turns off. */
#ifndef PINWHEEL_CACHES_H
#define PINWHEEL_CACHES_H

/* Turns them on again where Pinwheel can cache nothing. Call it before the transport reads its variables, while the
 * process has one thread. */
void pw_leave_caches(void);

#endif
