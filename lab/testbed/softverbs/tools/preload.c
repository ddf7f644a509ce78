/* Preloaded: UCX opens only devices whose character device it finds below /dev/infiniband; ours has none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *there(const char *path)
{
	return path && !strcmp(path, "/dev/infiniband/uverbs0") ? "/dev/zero" : path;
}

int stat(const char *path, struct stat *s)
{
	static int (*next)(const char *, struct stat *);

	if (!next)
		next = (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");
	return next(there(path), s);
}

int access(const char *path, int mode)
{
	static int (*next)(const char *, int);

	if (!next)
		next = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");
	return next(there(path), mode);
}
