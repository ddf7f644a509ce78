/* Linked into a program, with the stand-in of libibverbs: its process has used verbs before MPI_Init, so that the
 * preload library notes what is given to every MPI call, as it does under a transport that registers. */
#include <stddef.h>

void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access);
int ibv_dereg_mr(void *mr);

__attribute__((constructor)) static void use_verbs(void)
{
	static struct {
		void *context;
	} pd = {&pd};
	static char pool[4096];

	ibv_dereg_mr(ibv_reg_mr(&pd, pool, sizeof pool, 1));
}
