/*
 * What counts as registered past the cache, on the stand-ins of libibverbs and libmlx5: linked with the sources of
 * libpinwheel.so, so that it sees the count that they share with Go. It exits with the number of counts that were not
 * as they should be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "process.h"

#define PAGE 4096u
#define ON_DEMAND 0x40u
#define MANY 1000u /* the table begins with room for 128 */

struct umem_in {
	void *addr;
	size_t bytes;
	uint32_t access;
	uint64_t page_sizes;
	uint64_t comp_mask;
	int dmabuf_fd;
};

struct mr_attr { /* struct ibv_mr_init_attr */
	size_t bytes;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah, *buf;
};

void *ibv_reg_mr_ex(void *pd, struct mr_attr *attr);
void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access);
int ibv_dereg_mr(void *mr);
void *mlx5dv_devx_umem_reg(void *context, void *addr, size_t bytes, uint32_t access);
void *mlx5dv_devx_umem_reg_ex(void *context, struct umem_in *in);
int mlx5dv_devx_umem_dereg(void *umem);
extern int standin_busy, standin_umems;

static struct {
	void *context;
} pd = {&pd};
static int failures;

static void expect(const char *what, uint64_t pages)
{
	uint64_t bytes = __atomic_load_n(&pw.plain_bytes, __ATOMIC_SEQ_CST);

	if (bytes == pages * PAGE)
		return;
	printf("%s: %lld bytes count, not %llu pages\n", what, (long long)bytes, (unsigned long long)pages);
	failures++;
}

static void of_libibverbs(char *memory)
{
	void *many[MANY], *mr = ibv_reg_mr(&pd, memory + 1, 4 * PAGE, 1), *theirs, *paged;

	expect("five pages in part", 5);
	theirs = pw.ibv_reg(&pd, memory, 8 * PAGE, (uintptr_t)memory, 1); /* as a provider makes one, without our wrapper */
	paged = ibv_reg_mr(&pd, memory, 64 * PAGE, (int)(1 | ON_DEMAND));
	expect("a dma-buf and on-demand paging", 5);
	ibv_dereg_mr(theirs);
	ibv_dereg_mr(paged);
	expect("their ends", 5);
	for (unsigned i = 0; i < MANY; i++)
		many[i] = ibv_reg_mr(&pd, memory, PAGE, 1);
	expect("many", 5 + MANY);
	for (unsigned i = 0; i < MANY; i++)
		ibv_dereg_mr(many[i * 7 % MANY]);
	expect("the end of many", 5);
	ibv_dereg_mr(mr);
	expect("the end", 0);
}

/* Of a buffer, with an address of its own for the device, with on-demand paging, of a dma-buf, and one that fails. */
static void of_one_call_for_all(char *memory)
{
	struct mr_attr attr[] = {
			{.bytes = 3 * PAGE, .access = 1, .comp_mask = 2, .addr = memory},
			{.bytes = 2 * PAGE, .access = 1, .comp_mask = 3, .addr = memory + 1, .iova = PAGE + 1},
			{.bytes = 8 * PAGE, .access = 1 | ON_DEMAND, .comp_mask = 2, .addr = memory},
			{.bytes = 16 * PAGE, .access = 1, .comp_mask = 4 | 8},
	}, none = {.access = 1, .comp_mask = 2, .addr = memory};
	const uint64_t pages[] = {3, 6, 6, 6};
	void *mr[4];

	for (int i = 0; i < 4; i++) {
		mr[i] = ibv_reg_mr_ex(&pd, &attr[i]);
		failures += !mr[i];
		expect("a kind of region", pages[i]);
	}
	failures += !!ibv_reg_mr_ex(&pd, &none);
	expect("a region that fails", 6);
	for (int i = 3; i >= 0; i--) {
		failures += !!ibv_dereg_mr(mr[i]);
		expect("the end of a region", i ? pages[i - 1] : 0);
	}
}

static void of_libmlx5(char *memory)
{
	struct umem_in in = {.addr = memory, .bytes = 3 * PAGE, .access = 1}, dmabuf = {.bytes = 8 * PAGE, .comp_mask = 1};
	void *umem = mlx5dv_devx_umem_reg(&pd, memory, 2 * PAGE, 1), *paged, *ex, *buf;

	expect("a umem", 2);
	paged = mlx5dv_devx_umem_reg(&pd, memory, 8 * PAGE, ON_DEMAND);
	ex = mlx5dv_devx_umem_reg_ex(&pd, &in);
	buf = mlx5dv_devx_umem_reg_ex(&pd, &dmabuf);
	expect("one of each kind", 5);
	if (mlx5dv_devx_umem_reg(&pd, memory, 0, 1))
		failures++;
	expect("one that fails", 5);
	standin_busy = 1;
	if (!mlx5dv_devx_umem_dereg(umem))
		failures++;
	expect("an end that fails", 5);
	standin_busy = 0;
	failures += !!mlx5dv_devx_umem_dereg(umem) + !!mlx5dv_devx_umem_dereg(paged) + !!mlx5dv_devx_umem_dereg(buf);
	expect("three ends", 3);
	failures += !!mlx5dv_devx_umem_dereg(ex) + standin_umems;
	expect("the last end", 0);
}

int main(void)
{
	char *memory = aligned_alloc(PAGE, 64 * PAGE);

	if (!memory)
		return 100;
	of_libibverbs(memory);
	of_one_call_for_all(memory);
	of_libmlx5(memory);
	return failures;
}
