/* A program that links the library and looks at what that changes of the process. Its limit of open files is 200. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pinwheel_vmmc.h"

/* All but SIGKILL, SIGSTOP and the two of the C library. */
#define BLOCKABLE (~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1) | UINT64_C(3) << 31))

static int look(const char *task)
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

int main(int argc, char **argv)
{
	const char *addresses[] = {argc > 1 ? argv[1] : "", NULL};
	const pinwheel_vmmc_options options = {.size = sizeof options, .listen = addresses};
	pinwheel_vmmc_node *node;
	struct rlimit files;
	stack_t stack;
	int failed = 0;
	DIR *tasks;
	struct dirent *e;

	if (pinwheel_vmmc_open(&options, &node)) {
		printf("open failed\n");
		return 1;
	}
	for (int s = 1; s <= 64; s++) {
		struct sigaction a;

		if (s == SIGPIPE || sigaction(s, NULL, &a) || (a.sa_handler == SIG_DFL && !a.sa_flags) ||
		    a.sa_handler == SIG_IGN) /* as whoever started the test has it: nohup(1), a shell's "&" */
			continue;
		printf("signal %d has a handler or flags\n", s);
		failed = 1;
	}
	if (sigaltstack(NULL, &stack) || stack.ss_flags & SS_DISABLE) {
		printf("no alternate stack after a call\n"); /* which docs/host-process.md promises */
		failed = 1;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur != 200) {
		printf("%d files may be open\n", (int)files.rlim_cur);
		failed = 1;
	}
	tasks = opendir("/proc/self/task");
	while ((e = readdir(tasks)))
		failed |= e->d_name[0] != '.' && look(e->d_name);
	closedir(tasks);
	failed |= pinwheel_vmmc_close(node);
	printf(failed ? "not as before\n" : "as before\n");
	return failed;
}
