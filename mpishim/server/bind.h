/* C functions that the Go side calls; see bind.c. */
#ifndef PINWHEEL_BIND_H
#define PINWHEEL_BIND_H

#include "shared.h"

struct pw_shared *pw_take_bound(void); /* waits for one to be bound; more may hang on its next */
void pw_futex_wait(uint32_t *word, uint32_t value);
void pw_futex_wake(uint32_t *word);
/* By value: through a pointer it would be an allocation of Go's. */
struct pw_registration {
	struct pw_region region;
	int error; /* 0, or an errno */
};
struct pw_registration pw_register(struct pw_shared *s, void *pd, uint64_t addr, size_t bytes, unsigned access);
int pw_deregister(struct pw_shared *s, void *pd, uint64_t handle);
uint64_t pw_read_ticks(const struct pw_shared *s);
uint64_t pw_ticks_cost(const struct pw_shared *s);
uint64_t pw_program_base(void);
uint64_t pw_loads(void); /* how often libraries were loaded and unloaded: dl_iterate_phdr(3) */
const char *pw_symbol_of(uint64_t address, const char **file, uint64_t *offset);
struct pw_recorder *pw_new_recorder(void);
void pw_free(uint64_t address);

#endif
