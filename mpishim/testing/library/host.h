/* What a library that contains Go may not change of a process, whose limit of open files is 200. */
#ifndef PINWHEEL_TESTING_HOST_H
#define PINWHEEL_TESTING_HOST_H

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* All but SIGKILL, SIGSTOP and the two of the C library. */
#define BLOCKABLE (~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1) | UINT64_C(3) << 31))

static int look_at_thread(const char *task)
{
	unsigned long long blocked = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task);
	if (!(f = fopen(path, "r")))
		return 0;
	while (fgets(line, sizeof line, f))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(f);
	if (blocked == 0 && atoi(task) == getpid())
		return 0;
	if ((blocked & BLOCKABLE) == BLOCKABLE && atoi(task) != getpid())
		return 0;
	printf("thread %s of %d blocks %llx\n", task, (int)getpid(), blocked);
	return 1;
}

/* Says what was changed, but for the handler of one signal, or of 0. */
static int host_is_changed(int handled)
{
	struct rlimit files;
	struct dirent *e;
	int changed = 0;
	DIR *tasks;

	for (int s = 1; s <= 64; s++) {
		struct sigaction a;

		if (s == handled || sigaction(s, NULL, &a) || (a.sa_handler == SIG_DFL && !a.sa_flags) ||
		    a.sa_handler == SIG_IGN) /* as whoever started the test has it: nohup(1), a shell's "&" */
			continue;
		printf("signal %d has a handler or flags\n", s);
		changed = 1;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur != 200) {
		printf("%d files may be open\n", (int)files.rlim_cur);
		changed = 1;
	}
	tasks = opendir("/proc/self/task");
	while ((e = readdir(tasks)))
		changed |= e->d_name[0] != '.' && look_at_thread(e->d_name);
	closedir(tasks);
	return changed;
}

#endif
