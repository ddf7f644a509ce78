/* A program that links the library and looks at what that changes of the process. Its limit of open files is 200. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/time.h>

#include "check.h"
#include "host.h"
#include "pinwheel_watch.h"

static char *stack;
static size_t stack_bytes;
static volatile sig_atomic_t alarms, elsewhere;

/* A handler as programs have them, without SA_ONSTACK: it may run on stacks of the program only. */
static void on_alarm(int signal)
{
	char here;

	(void)signal;
	alarms++;
	if (&here < stack || &here >= stack + stack_bytes)
		elsewhere++;
}

static void find_stack(void)
{
	pthread_attr_t attr;
	void *at;

	MUST(!pthread_getattr_np(pthread_self(), &attr) && !pthread_attr_getstack(&attr, &at, &stack_bytes));
	stack = at;
	pthread_attr_destroy(&attr);
}

int main(void)
{
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	const struct sigaction action = {.sa_handler = on_alarm};
	char *at = memory(4096), text[64];
	pinwheel_watch_range *range;
	pinwheel_watch *watch;
	int failed;

	find_stack();
	MUST(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	MUST(!pinwheel_watch_open(NULL, &watch));
	while (alarms < 300) {
		pinwheel_watch_describe(watch, text, sizeof text);
		if (!pinwheel_watch_subscribe(watch, at, 4096, NULL, &range)) {
			pinwheel_watch_registered(range);
			pinwheel_watch_valid(range);
			pinwheel_watch_unsubscribe(range);
		}
	}
	MUST(!setitimer(ITIMER_REAL, &never, NULL));
	IS(0, elsewhere);
	failed = host_is_changed(SIGALRM);
	IS(0, pinwheel_watch_close(watch));
	printf(failed || failures ? "not as before\n" : "as before\n");
	return failed || failures;
}
