/* Linked with the device's own files: other processes whose numbers are used again, and what is said of refusals. */
#include "../check.h"
#include "../../sv.h"
#include <signal.h>

static void says(const char *scope, const char *wanted)
{
	char path[] = "/tmp/softverbs-scope.XXXXXX", line[256];
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, scope, strlen(scope)) == (ssize_t)strlen(scope));
	close(fd);
	sv_refusal(line, sizeof(line), 77, path);
	unlink(path);
	CHECK(strstr(line, "process 77") && strstr(line, wanted) && !strchr(line, '\n') && strlen(line) < 200);
}

/* A process that joins, tells its place and a descriptor, and waits for its end. */
static pid_t join(uint32_t *place, int *fd, const char **memory)
{
	static const char text[] = "of the child";
	int to_parent[2];
	pid_t child;

	CHECK(!pipe(to_parent));
	if (!(child = fork())) {
		CHECK(!sv_open() && (*fd = memfd_create("of the child", 0)) >= 0);
		*place = sv_me, *memory = text;
		CHECK(write(to_parent[1], place, sizeof(*place)) == sizeof(*place));
		CHECK(write(to_parent[1], fd, sizeof(*fd)) == sizeof(*fd));
		for (;;)
			pause();
	}
	CHECK(read(to_parent[0], place, sizeof(*place)) == sizeof(*place));
	CHECK(read(to_parent[0], fd, sizeof(*fd)) == sizeof(*fd));
	*memory = text; /* at the same address in both */
	close(to_parent[0]), close(to_parent[1]);
	return child;
}

static void end(pid_t child) { CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child); }

int main(void)
{
	uint32_t place, other;
	int fd, fd_of_other, got;
	const char *text;
	char copy[16];
	pid_t child, decoy;

	alarm(60);
	says("2\n", " is 2, and the device needs 0 or 1");
	says("3\n", " is 3, and the device needs 0 or 1");
	says("1\n", "PR_SET_DUMPABLE");
	says("", "PR_SET_DUMPABLE");
	CHECK(!sv_open() && sv_started(getpid()) && !sv_started(0));
	child = join(&place, &fd, &text);
	decoy = join(&other, &fd_of_other, &text);
	CHECK(sv->proc[place].pid == child && sv->proc[place].started == sv_started(child));

	/* As if the number of the child were the decoy's by now; they may have started in the same tick. */
	sv->proc[place].pid = decoy;
	sv->proc[place].started -= sv->proc[place].started == sv_started(decoy);
	CHECK(sv_peer_fd(place, fd) == -ESRCH);
	CHECK(sv_peer_read(place, copy, (uintptr_t)text, 12) == -ESRCH);
	sv->proc[place].pid = child, sv->proc[place].started = sv_started(child);
	CHECK((got = sv_peer_fd(place, fd)) >= 0 && !close(got));
	CHECK(sv_peer_read(place, copy, (uintptr_t)text, 12) == 12 && !memcmp(copy, "of the child", 12));
	CHECK(sv_peer_fd(place, 1000) == -EBADF);
	CHECK(sv_peer_read(place, copy, 4096, 12) == -EFAULT);
	end(child);
	CHECK(sv_peer_fd(place, fd) == -ESRCH);
	CHECK(sv_peer_read(place, copy, (uintptr_t)text, 12) == -ESRCH);
	end(decoy);
	puts("ok    peers");
	return 0;
}
