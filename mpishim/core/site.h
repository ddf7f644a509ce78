/* Call sites; see site.c. */
#ifndef PINWHEEL_SITE_H
#define PINWHEEL_SITE_H

#include "process.h"

void pw_site_init(void);
void pw_site_walk(void **frame, uint64_t stack_end, uint64_t frames[PW_FRAMES]);
struct pw_site *pw_site_here(struct pw_thread *t, void **frame); /* of the function with this frame; never NULL */
struct pw_site *pw_site_at(struct pw_thread *t, uint64_t address); /* with one frame; never NULL */

#endif
