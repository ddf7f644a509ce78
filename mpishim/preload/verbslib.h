/* The functions of the libibverbs behind us. Pointers to its types are void pointers. */
#ifndef PINWHEEL_VERBSLIB_H
#define PINWHEEL_VERBSLIB_H

#include <pthread.h>

#include "process.h"

struct mr_attr;
struct pw_verbs {
	void *(*reg)(void *pd, void *addr, size_t bytes, int access);
	void *(*reg_iova)(void *pd, void *addr, size_t bytes, uint64_t iova, int access);
	pw_ibv_reg_fn reg_iova2;
	void *(*reg_ex)(void *pd, struct mr_attr *attr);
	int (*rereg)(void *mr, int flags, void *pd, void *addr, size_t bytes, int access);
	pw_ibv_dereg_fn dereg;
	int (*dealloc_pd)(void *pd);
	int (*close_device)(void *context);
};
extern struct pw_verbs pw_verbs;

extern pthread_once_t pw_verbs_once;
void pw_verbs_resolve(void);

/* A function of a library, or of one behind us if lib is NULL or lacks it; of another version if it has no such. NULL:
 * none. */
void *pw_versioned(void *lib, const char *name, const char *version);

/* Finds the functions at the first call of a wrapper. */
static inline void pw_verbs_find(void)
{
	if (pw_unlikely(!__atomic_load_n(&pw.verbs_used, __ATOMIC_ACQUIRE)))
		pthread_once(&pw_verbs_once, pw_verbs_resolve);
}

#endif
