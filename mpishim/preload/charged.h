/*
 * What counts as registered past the cache, by the handle that ends it. Regions of other kinds end through the same
 * calls: on-demand paging, dma-buf and device memory pin no pages of the process, and some are made by the provider
 * without a call that is wrapped. So only what was counted is given back.
 */
#ifndef PINWHEEL_CHARGED_H
#define PINWHEEL_CHARGED_H

#include "process.h"

/* Remembers memory that pw_plain_begins has counted. A handle that is NULL was not made, and the memory is given back
 * at once. */
void pw_charged(void *handle, const void *addr, size_t bytes);

/* Ends a handle by a function that returns 0 if it did, and gives back what was counted for it. */
int pw_charge_ends(void *handle, int (*end)(void *handle));

/* Counts other memory than before for a handle; nothing if nothing was. */
void pw_charge_moved(const void *handle, const void *addr, size_t bytes);

#endif
