/* A program that links the library and looks at what that changes of the process. Its limit of open files is 200. */
#include "host.h"
#include "pinwheel_vmmc.h"

int main(int argc, char **argv)
{
	const char *addresses[] = {argc > 1 ? argv[1] : "", NULL};
	const pinwheel_vmmc_options options = {.size = sizeof options, .listen = addresses};
	pinwheel_vmmc_node *node;
	stack_t stack;
	int failed;

	if (pinwheel_vmmc_open(&options, &node)) {
		printf("open failed\n");
		return 1;
	}
	failed = host_is_changed(SIGPIPE);
	if (sigaltstack(NULL, &stack) || stack.ss_flags & SS_DISABLE) {
		printf("no alternate stack after a call\n"); /* which docs/host-process.md promises */
		failed = 1;
	}
	failed |= pinwheel_vmmc_close(node);
	printf(failed ? "not as before\n" : "as before\n");
	return failed;
}
