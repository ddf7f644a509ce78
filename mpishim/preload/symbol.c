/* Finds a symbol of the MPI library behind a preloaded library, for libpinwheel.so and libpinwheel-meter.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "symbol.h"

/* The objects of MPI libraries: libmpi.so.40, libmpi_mpifh.so.40, libmpich.so.12, ... */
struct search {
	const char *name;
	void *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	const char *base = strrchr(info->dlpi_name, '/');
	void *h;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, "libmpi", 6) || !(h = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD)))
		return 0;
	s->found = dlsym(h, s->name);
	dlclose(h);
	/* dlsym of one library may lead back to us, through its dependencies. */
	if (s->found) {
		Dl_info theirs, ours;

		if (dladdr(s->found, &theirs) && dladdr((void *)look, &ours) && theirs.dli_fbase == ours.dli_fbase)
			s->found = NULL;
	}
	return s->found != NULL;
}

void *pw_symbol(const char *name)
{
	struct search s = {name, dlsym(RTLD_NEXT, name)};

	/* Symbols of an MPI library that was loaded as a plug-in are not in our scope. */
	if (!s.found)
		dl_iterate_phdr(look, &s);
	return s.found;
}
