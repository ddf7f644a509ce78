/*
 * A program whose MPI library is preloaded with libpinwheel.so and that has a transport
 * which links pinwheel.h: each has its own registrations, both one helper library. The argument is the
 * order of the end: mpi-first or api-first.
 */
#define _GNU_SOURCE
#include "linked.h"
#include "standin.h"

static char *a;

static int send_and_use(void)
{
	return use_once(a, BYTES) || MPI_Send(a, BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
}

/* How many different files of that name are mapped. */
static int libraries(const char *name)
{
	char line[4096], last[4096] = "";
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;

	while (f && fgets(line, sizeof line, f)) {
		char *path = strchr(line, '/');

		if (path && strstr(path, name) && strcmp(path, last))
			n++, strcpy(last, path);
	}
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	int is_api_first = argc > 1 && !strcmp(argv[1], "api-first");

	EXPECT(!MPI_Init(&argc, &argv));
	begin();
	a = memory(BYTES);
	for (int i = 0; i < 50; i++)
		EXPECT(!send_and_use());
	EXPECT(libraries("libpinwheel-go.so") == 1);
	if (is_api_first)
		end();
	EXPECT(!MPI_Send(a, BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world) && !MPI_Finalize());
	if (!is_api_first) {
		EXPECT(!use_often(a, BYTES, 10));
		end();
	}
	return failures != 0;
}
