/*
 * Call sites: a bounded walk along frame pointers. No system call, no
 * allocation, no lock; it reads nothing but the stack of its thread.
 */
#define _GNU_SOURCE
#include <link.h>

#include "shim.h"

/* Code of the program and its libraries. A return address lies in it; what does
 * not is the data of a function that was built without frame pointers. */
#define PW_TEXTS 64u
static struct {
	uint64_t start, end;
} text[PW_TEXTS];
static unsigned texts;

static int add_text(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum && texts < PW_TEXTS; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		text[texts].start = info->dlpi_addr + p->p_vaddr;
		text[texts].end = text[texts].start + p->p_memsz;
		texts++;
	}
	return 0;
}

/* Called at the end of MPI_Init: the program itself comes first, and is nearly always what is found. */
void pw_site_init(void)
{
	if (!texts)
		dl_iterate_phdr(add_text, NULL);
}

static inline int is_code(uint64_t address)
{
	for (unsigned i = 0; i < texts; i++)
		if (address - text[i].start < text[i].end - text[i].start)
			return 1;
	return 0;
}

unsigned pw_site_walk(void **frame, uint64_t stack_end, uint64_t frames[PW_FRAMES])
{
	unsigned n = 0;

	while (n < PW_FRAMES) {
		uint64_t here = (uint64_t)frame, up;

		if (!is_code((uint64_t)frame[1]))
			break;
		frames[n++] = (uint64_t)frame[1];
		up = (uint64_t)frame[0];
		if (up <= here || up > stack_end - 16 || up & 7)
			break;
		frame = (void **)up;
	}
	for (unsigned i = n; i < PW_FRAMES; i++)
		frames[i] = 0;
	return n;
}
