#ifndef BENCH_FABRIC_H
#define BENCH_FABRIC_H
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct fabric_mr {
	void *mr;     /* struct fid_mr */
	uint64_t key; /* no two registrations have the same */
};

/* monitor: memhooks, userfaultfd, disabled, or pinwheel. All return 0 or a negative errno of libfabric. */
int fabric_open(const char *monitor, const char *mechanism, size_t far_bytes, struct fabric **to);
void fabric_close(struct fabric *f);
/* What libfabric's cache has, or registers. */
int fabric_register(struct fabric *f, const void *address, size_t bytes, struct fabric_mr *to);
int fabric_deregister(struct fabric_mr *mr);
/* Moves bytes between registered memory and that of the far side. */
int fabric_write(struct fabric *f, const void *address, size_t bytes, const struct fabric_mr *mr);
int fabric_read(struct fabric *f, void *address, size_t bytes, const struct fabric_mr *mr);
void *fabric_far(struct fabric *f);
const char *fabric_error(int error);
/* Nanoseconds of each of n registrations and their ends. */
double fabric_time(struct fabric *f, const void *address, size_t bytes, int n);
#endif
