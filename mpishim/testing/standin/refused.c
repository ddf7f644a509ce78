/*
 * Memory that can't be kept registered, or not be registered at all, sent many times: prints how often the
 * device was asked for each kind.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "standin.h"

#define BYTES (64 << 10)
#define SENDS 200

static char *map(void *at, int rights)
{
	return mmap(at, BYTES, rights, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

/* Sends a buffer, and prints for how many registrations the device was asked and how many sends failed. */
static void send_all(const char *what, const char *buf)
{
	long before = standin_attempts;
	int failed = 0;

	for (int i = 0; i < SENDS; i++)
		failed += MPI_Send(buf, BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
	printf("%s %ld %d\n", what, standin_attempts - before, failed);
}

int main(int argc, char **argv)
{
	char *buf = map(NULL, PROT_READ | PROT_WRITE), *device = map(NULL, PROT_NONE), *none = map(NULL, PROT_NONE);
	char *constant = map(NULL, PROT_READ | PROT_WRITE);

	memset(constant, 1, BYTES);
	if (MPI_Init(&argc, &argv) || mprotect(constant, BYTES, PROT_READ))
		return 1;
	send_all("usual", buf);
	send_all("constant", constant);
	send_all("none", none);
	standin_peer_memory = 1;
	send_all("device", device);
	standin_peer_memory = 0;
	munmap(device, BYTES);
	if (map(device, PROT_READ | PROT_WRITE) != device)
		return 1;
	send_all("renewed", device);
	return MPI_Finalize();
}
