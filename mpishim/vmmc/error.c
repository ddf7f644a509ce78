/* The text of the last error of each thread. A call from C into Go runs in the thread of its caller. */
#include "objects.h"

static __thread char kept[512];

void vmmc_keep_error(const char *text, size_t bytes)
{
	if (bytes >= sizeof kept)
		bytes = sizeof kept - 1;
	memcpy(kept, text, bytes);
	kept[bytes] = 0;
}

__attribute__((visibility("default"))) size_t pinwheel_vmmc_error(char *text, size_t size)
{
	size_t n = strlen(kept);

	if (text && size) {
		size_t part = n < size ? n : size - 1;

		memcpy(text, kept, part);
		text[part] = 0;
	}
	return n;
}

/* See ../quiet/quiet.c: functions of this library run on the program's threads, and write to sockets there. */
__attribute__((visibility("hidden"))) const int pw_quiet_handles_sigpipe = 1;
