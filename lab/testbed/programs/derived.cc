// Columns and blocks of a matrix as derived datatypes: memory with gaps, which MPI may copy into buffers of its own.
#include "check.h"

#include <vector>

int main(int argc, char **argv)
{
	long steps = check_arg(argc, argv, 1, 6), n = check_arg(argc, argv, 2, 384);

	check_begin(&argc, &argv);
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
	MPI_Datatype columns, block;
	MPI_Type_vector((int)n, (int)n / 2, (int)n, MPI_UINT64_T, &columns);
	MPI_Type_commit(&columns);
	const int sizes[] = {(int)n, (int)n}, part[] = {(int)n / 2, (int)n / 2}, from[] = {1, 1};
	MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_UINT64_T, &block);
	MPI_Type_commit(&block);
	for (long s = 0; s < steps; s++) {
		std::vector<uint64_t> a((size_t)(n * n)), b((size_t)(n * n), 0), c((size_t)(n * n), 0);
		MPI_Request q[4];

		check_fill(a.data(), a.size(), check_rank, (int)s, 0);
		MPI_Irecv(b.data(), 1, columns, left, 0, MPI_COMM_WORLD, &q[0]);
		MPI_Irecv(c.data(), 1, block, right, 1, MPI_COMM_WORLD, &q[1]);
		MPI_Isend(a.data(), 1, columns, right, 0, MPI_COMM_WORLD, &q[2]);
		MPI_Isend(a.data(), 1, block, left, 1, MPI_COMM_WORLD, &q[3]);
		MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
		for (long i = 0; i < n; i++)
			for (long j = 0; j < n; j++) {
				size_t k = (size_t)(i * n + j);
				bool in_block = i >= 1 && i < 1 + n / 2 && j >= 1 && j < 1 + n / 2;

				check_errors += b[k] != (j < n / 2 ? check_word(left, (int)s, 0, k) : 0);
				check_errors += c[k] != (in_block ? check_word(right, (int)s, 0, k) : 0);
			}
	}
	MPI_Type_free(&columns);
	MPI_Type_free(&block);
	return check_end("derived");
}
