/* The state of a process before the Go side is loaded, and the line for the user. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

/* 16 KiB until Go has read the settings. */
struct pw_shared pw = {.threshold = 16 << 10, .notice = 16 << 10, .rank = -1, .size = -1, .plain_room = UINT64_MAX};
int pw_disabled;

void pw_warn(const char *format, ...)
{
	const char *log = getenv("PINWHEEL_LOG");
	char line[512] = "pinwheel: ";
	va_list args;
	int n;

	if (log && !strcasecmp(log, "off")) /* case counts nowhere */
		return;
	va_start(args, format);
	n = vsnprintf(line + 10, sizeof line - 12, format, args) + 10;
	va_end(args);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody to tell */
}

/* The switch PINWHEEL_DISABLE must be known before Go is there. The Go side reads all other settings. */
static int is_yes(const char *v)
{
	return v && (!strcasecmp(v, "y") || !strcasecmp(v, "yes") || !strcmp(v, "1") || !strcasecmp(v, "on") ||
		     !strcasecmp(v, "true"));
}

/* Whether the kernel keeps its time by the time stamp counter, which only x86 has. */
static int keeps_time_by_tsc(void)
{
	int is_tsc = 0;
#ifdef __x86_64__
	char source[32] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (f) {
		is_tsc = fgets(source, sizeof source, f) && !strcmp(source, "tsc\n");
		fclose(f);
	}
#endif
	return is_tsc;
}

void pw_prepare(void)
{
	if (is_yes(getenv("PINWHEEL_DISABLE")))
		pw_disable();
	pw.page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	pw.ticks_are_ns = pw_is_disabled() || !keeps_time_by_tsc();
}
