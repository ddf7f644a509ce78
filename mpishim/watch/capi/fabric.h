/*
 * The part of libfabric's binary interface that a memory monitor uses, as of 1.17.
 *
 * Declared here, and not taken from <rdma/fi_ext.h>, so that every build has it. A test compares all of it with the
 * real header.
 */
#ifndef PINWHEEL_WATCH_FABRIC_H
#define PINWHEEL_WATCH_FABRIC_H

#include <stdbool.h>
#include <stddef.h>

enum { FABRIC_CLASS_MEM_MONITOR = 23 };

struct fabric_fid {
	size_t fclass;
	void *context;
	struct fabric_ops {
		size_t size;
		int (*close)(struct fabric_fid *fid);
		/* and others, which we don't call */
	} *ops;
};

struct fid_mem_monitor;

/* What libfabric calls, with its lock of all caches held. */
struct fabric_monitor_ops {
	size_t size;
	int (*start)(struct fid_mem_monitor *monitor);
	void (*stop)(struct fid_mem_monitor *monitor);
	int (*subscribe)(struct fid_mem_monitor *monitor, const void *address, size_t bytes);
	void (*unsubscribe)(struct fid_mem_monitor *monitor, const void *address, size_t bytes);
	bool (*valid)(struct fid_mem_monitor *monitor, const void *address, size_t bytes);
};

/* What we call. It takes that lock, and drops from all caches what overlaps. */
struct fabric_notify_ops {
	size_t size;
	void (*notify)(struct fid_mem_monitor *monitor, const void *address, size_t bytes);
};

struct fid_mem_monitor {
	struct fabric_fid fid;
	struct fabric_monitor_ops *export_ops;
	struct fabric_notify_ops *import_ops;
};

#endif
