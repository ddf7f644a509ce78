/*
 * Collective MPI-IO as HDF5 does it: pieces of all ranks lie interleaved in a file, so MPI exchanges them between
 * the ranks before it writes, and after it has read.
 */
#include "check.h"
#include <unistd.h>

#define PIECES 16

/* A file of its own for each job, which goes when it is closed. Every rank is to move data. */
static MPI_File open_file(void)
{
	char name[4096], nodes[16];
	const char *dir = getenv("TMPDIR");
	int pid = (int)getpid();
	MPI_File file;
	MPI_Info info;

	MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(name, sizeof name, "%s/fileio-%d", dir ? dir : "/tmp", pid);
	snprintf(nodes, sizeof nodes, "%d", check_size);
	MPI_Info_create(&info);
	MPI_Info_set(info, "cb_nodes", nodes);
	MPI_Info_set(info, "cb_config_list", "*:*");
	MPI_Info_set(info, "romio_cb_write", "enable");
	MPI_Info_set(info, "romio_cb_read", "enable");
	if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file)) {
		fprintf(stderr, "fileio: rank %d can't open %s\n", check_rank, name);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	MPI_Info_free(&info);
	return file;
}

/* Otherwise a rank may read what another has yet to write for it: MPI promises no more. */
static void settle(MPI_File file)
{
	MPI_File_sync(file);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_sync(file);
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);
	size_t piece = (size_t)check_arg(argc, argv, 2, 64 << 10) / 8, n = piece * PIECES;
	MPI_Datatype view;
	MPI_Status status;
	MPI_File file;

	check_begin(&argc, &argv);
	uint64_t *a = check_alloc(n), *b = check_alloc(n);

	file = open_file();
	MPI_Type_vector(PIECES, (int)piece, (int)piece * check_size, MPI_UINT64_T, &view);
	MPI_Type_commit(&view);
	MPI_File_set_view(file, (MPI_Offset)(piece * 8) * check_rank, MPI_UINT64_T, view, "native", MPI_INFO_NULL);
	for (int s = 0; s < steps; s++) {
		check_fill(a, n, check_rank, s, 0);
		memset(b, 0, n * 8);
		MPI_File_write_at_all(file, 0, a, (int)n, MPI_UINT64_T, &status);
		settle(file);
		MPI_File_read_at_all(file, 0, b, (int)n, MPI_UINT64_T, &status);
		check_same(b, n, check_rank, s, 0);
		settle(file);

		check_fill(a, n, check_rank, s, 1);
		memset(b, 0, n * 8);
		MPI_File_write_at_all_begin(file, 0, a, (int)n, MPI_UINT64_T);
		MPI_File_write_at_all_end(file, a, &status);
		settle(file);
		MPI_File_seek(file, 0, MPI_SEEK_SET);
		MPI_File_read_all(file, b, (int)n, MPI_UINT64_T, &status);
		check_same(b, n, check_rank, s, 1);
		settle(file);
	}
	MPI_File_close(&file);
	MPI_Type_free(&view);
	return check_end("fileio");
}
