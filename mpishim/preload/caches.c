/*
 * Where nothing tells when memory is unmapped, Pinwheel caches nothing (vmwatch), and a transport without its own
 * cache would be slower than without us. Only the rank knows: the launcher may run on another node. So "pinwheel run"
 * lists the variables that it has set, and the rank takes them back before MPI_Init, where transports read them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "caches.h"

/* NAME=value of each, separated by colons: internal/tools/launch. */
#define LIST "LIBPINWHEEL_CACHES_OFF"

#define UFFD_USER_MODE_ONLY_ 1
#define UFFDIO_API_ 0xc018aa3fu
/* UFFD_FEATURE_EVENT_REMAP, EVENT_REMOVE, EVENT_UNMAP, WP_UNPOPULATED, WP_ASYNC: those that vmwatch needs. The last is
 * of Linux 6.7, and not in every <linux/userfaultfd.h>. */
#define FEATURES (1ull << 2 | 1ull << 3 | 1ull << 6 | 1ull << 13 | 1ull << 15)

static int has_userfaultfd(void)
{
	uint64_t api[3] = {0xaa, FEATURES, 0}; /* struct uffdio_api */
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY_), rc;

	if (fd < 0)
		return 0;
	rc = ioctl(fd, UFFDIO_API_, api);
	close(fd);
	return !rc;
}

/* Whether the process may load BPF programs that look at system calls. */
static int has_bpf(void)
{
	static const uint64_t code[] = {0xb7, 0x95}; /* r0 = 0; exit */
	union bpf_attr a;
	int fd;

	memset(&a, 0, sizeof a);
	a.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	a.insns = (uintptr_t)code;
	a.insn_cnt = sizeof code / sizeof *code;
	a.license = (uintptr_t) "GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Whether the kernel shows the process the frames of its pages: proc_pid_pagemap(5). */
static int has_frames(void)
{
	uint64_t entry = 0;
	off_t at = (off_t)((uintptr_t)&entry / (uintptr_t)sysconf(_SC_PAGESIZE) * sizeof entry);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, sizeof entry, at) != sizeof entry)
		entry = 0;
	close(fd);
	return (entry & ((1ull << 55) - 1)) != 0;
}

/* Whether the watch service of the node is there, which loads BPF programs for others: vmwatch, ServicePath. */
static int has_service(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const char *path = getenv("PINWHEEL_WATCHD");
	int fd, rc;

	if (!path || !*path)
		path = "/run/pinwheel/watch.sock";
	if (!strcasecmp(path, "off") || strlen(path) >= sizeof a.sun_path)
		return 0;
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	rc = connect(fd, (const struct sockaddr *)&a, sizeof a);
	close(fd);
	return !rc;
}

/* Whether anything is there that PINWHEEL_WATCH allows. Whether it works is found out when it is opened. */
static int can_watch(void)
{
	const char *how = getenv("PINWHEEL_WATCH");

	if (!how || !*how || !strcasecmp(how, "auto"))
		return has_userfaultfd() || has_service() || has_bpf() || has_frames();
	if (!strcasecmp(how, "uffd"))
		return has_userfaultfd();
	if (!strcasecmp(how, "pfn"))
		return has_frames();
	return strcasecmp(how, "none") && (has_service() || has_bpf());
}

void pw_leave_caches(void)
{
	const char *list = getenv(LIST);
	char *copy, *entry, *rest, *value;

	if (!list || can_watch() || !(copy = strdup(list)))
		return;
	for (entry = strtok_r(copy, ":", &rest); entry; entry = strtok_r(NULL, ":", &rest)) {
		const char *have;

		if (!(value = strchr(entry, '=')))
			continue;
		*value++ = '\0';
		have = getenv(entry);
		if (have && !strcmp(have, value)) /* else somebody has set it since */
			unsetenv(entry);
	}
	free(copy);
}
