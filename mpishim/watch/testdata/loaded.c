/* A program that loads the library, uses it and closes it, again and again: loaded LIBRARY. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"
#include "pinwheel_watch.h"

int main(int argc, char **argv)
{
	for (int i = 0; argc > 1 && i < 10; i++) {
		int (*open)(const pinwheel_watch_options *, pinwheel_watch **);
		int (*close)(pinwheel_watch *);
		void *library = dlopen(argv[1], RTLD_NOW);
		pinwheel_watch *watch;

		MUST(library);
		*(void **)&open = dlsym(library, "pinwheel_watch_open");
		*(void **)&close = dlsym(library, "pinwheel_watch_close");
		MUST(open && close && !open(NULL, &watch));
		IS(0, close(watch));
		IS(0, dlclose(library));
	}
	return finish();
}
