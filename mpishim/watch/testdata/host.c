/* A program that links the library and looks at what that changes of the process. Its limit of open files is 200. */
#define _GNU_SOURCE
#include "check.h"
#include "host.h"
#include "pinwheel_watch.h"

int main(void)
{
	char *at = memory(4096);
	pinwheel_watch_range *range;
	pinwheel_watch *watch;
	int failed;

	MUST(!pinwheel_watch_open(NULL, &watch));
	if (!pinwheel_watch_subscribe(watch, at, 4096, NULL, &range)) {
		pinwheel_watch_registered(range);
		pinwheel_watch_valid(range);
	}
	failed = host_is_changed(0);
	IS(0, pinwheel_watch_close(watch));
	printf(failed || failures ? "not as before\n" : "as before\n");
	return failed;
}
