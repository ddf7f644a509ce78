/*
 * Two tables of the Go runtime decide which signals its threads unblock, and whether it sends any. No setting reaches
 * the first one, and a GODEBUG of the user's would win over ours for the second. C can't name them either, so
 * they are looked for by what they contain, in the data of this library.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime.h"

struct go_string {
	const char *text;
	intptr_t bytes;
};

/* sigTabT of runtime2.go */
struct signal_entry {
	int32_t flags;
	struct go_string name;
};
#define UNBLOCK 128 /* _SigUnblock: a thread has it unblocked, whatever its creator had */
#define SET_STACK 64 /* _SigSetStack: a signal of the C library */
#define SIGNALS 65

/* dbgVar of runtime1.go: a variable that GODEBUG sets */
struct debug_variable {
	struct go_string name;
	int32_t *value;
	void *atomic;
	int32_t otherwise;
};

struct image {
	uintptr_t start, end; /* of the library */
	struct {
		uintptr_t start, end;
	} data[4]; /* what may be written */
	int datas;
};

static int find_image(struct dl_phdr_info *info, size_t size, void *to)
{
	struct image found = {.start = UINTPTR_MAX}, *image = to;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;

		if (p->p_type != PT_LOAD)
			continue;
		if (start < found.start)
			found.start = start;
		if (end > found.end)
			found.end = end;
		if (p->p_flags & PF_W && found.datas < 4) {
			found.data[found.datas].start = start;
			found.data[found.datas++].end = start + p->p_filesz; /* the rest is zero */
		}
	}
	for (int i = 0; i < info->dlpi_phnum; i++) { /* what the linker protects after relocation */
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;

		for (int k = 0; p->p_type == PT_GNU_RELRO && k < found.datas; k++)
			if (end > found.data[k].start && end <= found.data[k].end)
				found.data[k].start = end;
	}
	if ((uintptr_t)find_image < found.start || (uintptr_t)find_image >= found.end)
		return 0;
	*image = found;
	return 1;
}

static int is_within(const struct image *i, const void *at, size_t bytes)
{
	return (uintptr_t)at >= i->start && (uintptr_t)at < i->end && bytes <= i->end - (uintptr_t)at;
}

static int is(const struct image *i, const struct go_string *s, const char *text)
{
	size_t bytes = strlen(text);

	return s->bytes == (intptr_t)bytes && is_within(i, s->text, bytes) && !memcmp(s->text, text, bytes);
}

static int is_signal_table(const struct image *i, const struct signal_entry *table, uintptr_t end)
{
	return (uintptr_t)(table + SIGNALS) <= end && is(i, &table[0].name, "SIGNONE: no trap") &&
	       is(i, &table[1].name, "SIGHUP: terminal line hangup") && table[1].flags == 3 &&
	       is(i, &table[27].name, "SIGPROF: profiling alarm clock") && table[27].flags == (1 | UNBLOCK) &&
	       is(i, &table[34].name, "signal 34") && table[34].flags == (SET_STACK | UNBLOCK) &&
	       is(i, &table[64].name, "signal 64") && table[64].flags == 1;
}

static int is_preemption(const struct image *i, const struct debug_variable *v, uintptr_t end)
{
	return (uintptr_t)(v + 1) <= end && is(i, &v->name, "asyncpreemptoff") && is_within(i, v->value, sizeof *v->value) &&
	       !v->atomic && !v->otherwise;
}

int pw_quiet_change_runtime(void)
{
	static int32_t of_the_user; /* what GODEBUG says goes here, and counts no more */
	struct signal_entry *signals = NULL;
	struct debug_variable *preemption = NULL;
	struct image image;

	if (!dl_iterate_phdr(find_image, &image))
		return -1;
	for (int k = 0; k < image.datas; k++) {
		uintptr_t end = image.data[k].end;

		for (uintptr_t at = (image.data[k].start + 7) & ~(uintptr_t)7; at + sizeof(struct signal_entry) <= end; at += 8) {
			if (is_signal_table(&image, (void *)at, end))
				signals = (void *)at;
			else if (is_preemption(&image, (void *)at, end))
				preemption = (void *)at;
		}
	}
	if (!signals || !preemption)
		return -1;
	for (int s = 1; s < SIGNALS; s++)
		if (s != 32 && s != 33) /* setuid(2) and the like send these to every thread, and wait for all of them */
			signals[s].flags &= ~UNBLOCK;
	*preemption->value = 1;
	preemption->value = &of_the_user;
	return 0;
}
