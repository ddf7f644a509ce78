// Tells processes which of their mappings change, before they change.
//
// Each process has a log of its own, which is found by its address space: one set of programs serves
// all processes of a job on a node. Three families of hooks feed the logs; package vmwatch attaches
// exactly one of them:
//   fentry/fexit on the kernel functions that remove or move page tables
//   tp_btf/sys_enter, sys_exit: every system call passes here
//   tracepoint/syscalls/...: programs run for the calls that change mappings only; the kernel takes a slower way into
//   every other call all the same, some 90 ns, while any process has a tracepoint of one
//
// The entry hook publishes before the kernel touches the mapping, so that no
// thread can be given the address while the change is still unseen. The exit
// hook publishes again, for a range that was registered between the two.
//
// The structures below name only the members that are read; CO-RE finds them
// in the running kernel. What differs between processors is in x86.h and arm64.h.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

#define CORE __attribute__((preserve_access_index))
typedef unsigned long ulong;
typedef struct { __s64 counter; } CORE atomic64_t;
typedef struct { atomic64_t refcnt; } CORE file_ref_t;
struct file { void *f_op, *private_data; atomic64_t f_count; file_ref_t f_ref; } CORE;
struct fdtable { struct file **fd; } CORE;
struct files_struct { struct fdtable *fdt; } CORE;
struct vm_area_struct { struct mm_struct *vm_mm; } CORE;
struct io_kiocb { __u8 opcode; } CORE;
struct pagetable_move_control { struct vm_area_struct *old; ulong old_addr, len_in; } CORE;
#ifdef __TARGET_ARCH_arm64
#include "arm64.h"
#else
#include "x86.h"
#endif

/* Shared by mmap; log_unsafe.go mirrors all of it. */
#define SLOTS 4096
#define GRANULES 65536 /* of 2 MiB */
#define EVERYTHING (~0UL)

struct control {
	__u64 head;        /* the generation: records ever published */
	__u64 pad0[7];     /* head alone in its cache line: it is read on every send */
	__u64 blind;       /* changes go unseen from now on: see uring_submit, and service.go */
	__u64 suppressed;  /* changes of memory that nobody watches */
	__u64 brk_high;    /* highest program break seen at the entry of a brk */
	__u64 brk_low;     /* lowest that one was asked for below the break of its time; 0: none yet */
	__u64 pad1[4];
};
struct record { __u64 start, end, check, seq; };

/*
 * interest counts how many watch each granule, by its number modulo GRANULES. Counts, and not bits: Go
 * and C threads add and take away at the same time (interest.go, regcache/grant.h).
 */
struct shared {
	struct control control;
	struct record records[SLOTS];
	__u32 interest[GRANULES];
};

/* The log of a process: a map with one value, which the process maps. */
struct log { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
	     __uint(key_size, 4); __uint(value_size, sizeof(struct shared)); };
struct { __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS); __uint(max_entries, 1024); __type(key, __u64); /* see space_of */
	 __array(values, struct log); } logs SEC(".maps");

/* What inspect finds; bpfcall_unsafe.go mirrors it. */
struct inspected { __u64 operations, space, own, holders; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct inspected); } captured SEC(".maps");

static __always_inline struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task_btf();
}

/*
 * By what its log is found. Not by t->mm: the verifier then looks for the type of each pointer on the way among all types
 * of the kernel.
 */
static __always_inline __u64 own_space(struct task_struct *t) { return space_of(BPF_CORE_READ(t, mm)); }

/* The log of an address space; NULL if it is not watched. */
static __always_inline struct shared *log_of(__u64 space)
{
	__u32 zero = 0;
	void *log = bpf_map_lookup_elem(&logs, &space);
	return log ? bpf_map_lookup_elem(log, &zero) : NULL;
}

/*
 * Whether anyone watches part of [start,end). More than 16 granules (32 MiB) count as watched. The verifier goes
 * through the loop in every program, for every rank: so it has no branch, and looks at the last
 * granule again instead of ending.
 */
static __always_inline int watched(struct shared *log, __u64 start, __u64 end)
{
	__u64 first = start >> 21, last = (end - 1) >> 21;
	__u32 watches = 0;

	if (last - first >= 16)
		return 1;
	for (int i = 0; i < 16; i++) {
		__s64 left = last - first - i;
		__s64 past = left >> 63; /* all ones, past the end */
		asm volatile("" : "+r"(past)); /* else the compiler makes a branch of it */
		watches |= *(volatile __u32 *)&log->interest[(first + i + (left & past)) & (GRANULES - 1)];
	}
	return watches != 0;
}

/*
 * Publishes one change. A slot belongs to whoever drew its number from head.
 * A writer that sleeps while the log goes round once may write over a newer
 * record; the check word then matches no number and the reader takes it for
 * an overrun, which flushes everything.
 */
static __always_inline int publish_watched(struct shared *log, __u64 start, __u64 end)
{
	__u64 seq = __sync_fetch_and_add(&log->control.head, 1);
	struct record *r = &log->records[seq & (SLOTS - 1)];
	r->start = start;
	r->end = end;
	r->check = start * 0x9e3779b97f4a7c15ULL + end * 0xc2b2ae3d27d4eb4fULL + seq + 1;
	__sync_lock_test_and_set(&r->seq, seq + 1); /* a full barrier, then visible */
	return 0;
}

static __always_inline int publish(struct shared *log, __u64 start, __u64 end)
{
	if (!log || end <= start)
		return 0;
	if (!watched(log, start, end)) {
		log->control.suppressed++; /* statistics: lost updates are harmless */
		return 0;
	}
	return publish_watched(log, start, end);
}

/*
 * Publishes a change in the log of the calling process, as a function that the verifier checks once in
 * each program: a program for system calls publishes in many places.
 */
__attribute__((noinline)) int publish_range(__u64 start, __u64 end)
{
	return publish(log_of(own_space(current_task())), start, end);
}

/*
 * Looks at an open file of the caller, for BPF_PROG_TEST_RUN: what kind of file it is, by its operations; the address space
 * that it shows if it is a pagemap, whose private_data is the mm_struct (fs/proc/task_mmu.c, pagemap_open), and how many
 * descriptors and mappings hold it. Only one caller may use captured at a time.
 */
SEC("raw_tp")
int inspect(struct bpf_raw_tracepoint_args *args)
{
	struct task_struct *t = current_task();
	struct file **files = BPF_CORE_READ(t, files, fdt, fd), *file = NULL;
	struct inspected found = {.own = own_space(t)};
	__u32 zero = 0;

	bpf_probe_read_kernel(&file, sizeof(file), files + (__u32)args->args[0]);
	found.operations = (__u64)BPF_CORE_READ(file, f_op);
	found.space = space_of(BPF_CORE_READ(file, private_data));
	if (bpf_core_field_exists(file->f_ref)) /* since Linux 6.13, and counts from 0 */
		found.holders = BPF_CORE_READ(file, f_ref.refcnt.counter) + 1;
	else
		found.holders = BPF_CORE_READ(file, f_count.counter);
	bpf_map_update_elem(&captured, &zero, &found, 0);
	return 0;
}

/* Advice that takes pages away. Not MADV_FREE (8): reclaim leaves pinned pages alone. */
static __always_inline int discards(__u64 advice)
{
	return advice == 4 /* DONTNEED */ || advice == 9 /* REMOVE */ || advice == 24 /* DONTNEED_LOCKED */ ||
	       advice == 100 /* HWPOISON */ || advice == 101 /* SOFT_OFFLINE */ || advice == 102 /* GUARD_INSTALL */;
}

static __always_inline __u64 untag(__u64 addr)
{
	return addr & ((1ULL << ADDRESS_BITS) - 1);
}

/*
 * A call returned [addr, addr+len) to its caller. Memory that was watched
 * there is gone, though the call that took it away may not have returned yet,
 * and may have begun before it was watched: this is the last moment to tell
 * the new owner.
 */
static __always_inline int handed_out(__u64 addr, __u64 len)
{
	if (addr > -4096UL) /* an error */
		return 0;
	return publish_range(addr, addr + len);
}

static __always_inline int change(struct task_struct *task, struct pt_regs *regs, __u64 nr, int exit)
{
	struct shared *log = log_of(own_space(task));
	if (!log)
		return 0;
	struct control *control = &log->control;
	__u64 addr = untag(FIRST(regs, exit)), len = SECOND(regs);
	switch (nr) {
	case MMAP:
		if (exit)
			return handed_out(RETURNED(regs), len);
		if ((FOURTH(regs) & 0x100010) != 0x10) /* only MAP_FIXED (0x10) without MAP_FIXED_NOREPLACE (0x100000) replaces */
			return 0;
		break;
	case MUNMAP:
		break;
	case BRK: {
		if (!addr)
			return 0;
		if (exit) /* the break from which it came is known no more */
			return publish_range(control->brk_low && control->brk_low < addr ? control->brk_low : addr, control->brk_high);
		__u64 old = BPF_CORE_READ(task, mm, brk);
		if (old > control->brk_high)
			control->brk_high = old;
		if (addr < old && (!control->brk_low || addr < control->brk_low))
			control->brk_low = addr;
		return publish_range(addr, old);
	}
	case MREMAP:
		if (exit)
			handed_out(RETURNED(regs), THIRD(regs));
		else if (FOURTH(regs) & 2) /* MREMAP_FIXED */
			publish_range(untag(FIFTH(regs)), untag(FIFTH(regs)) + THIRD(regs));
		if (THIRD(regs) >= len && !(FOURTH(regs) & 1)) /* grows in place or fails: no MREMAP_MAYMOVE */
			return 0;
		break;
	case MADVISE:
		if (!discards(THIRD(regs)))
			return 0;
		break;
	case SHMAT: /* how long the segment is, is not known here */
		if (exit)
			return handed_out(RETURNED(regs), EVERYTHING - RETURNED(regs));
		if (!(THIRD(regs) & 040000)) /* SHM_REMAP */
			return 0;
		return publish_range(untag(SECOND(regs)) & ~page_mask, EVERYTHING);
	case PROCESS_MADVISE: /* the ranges lie in user memory */
		if (!discards(FOURTH(regs)))
			return 0;
		return publish_range(0, EVERYTHING);
	default:
		return 0;
	}
	return publish_range(addr, addr + ((len + page_mask) & ~page_mask));
}

static __always_inline int every_call(struct pt_regs *regs, __u64 nr, int exit)
{
	struct task_struct *task = current_task();
	if (is_foreign(task))
		return publish_range(0, EVERYTHING);
	nr = native(nr);
	switch (nr) { /* before anything is looked up: most calls end here */
	case MMAP: case MUNMAP: case BRK: case MREMAP: case MADVISE: case SHMAT: case PROCESS_MADVISE:
		return change(task, regs, nr, exit);
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(any_enter, struct pt_regs *regs, long nr) { return every_call(regs, nr, 0); }
SEC("tp_btf/sys_exit")
int BPF_PROG(any_exit, struct pt_regs *regs, long ret) { return every_call(regs, NUMBER(regs), 1); }

/* What the tracepoints syscalls:sys_enter_* and sys_exit_* tell: struct syscall_tp_t, kernel/trace/trace_syscalls.c. */
struct call { __u64 regs; __u32 nr; };

/* The same two programs serve the tracepoints of all calls. */
SEC("tracepoint")
int call_enter(struct call *c)
{ struct task_struct *t = current_task(); return change(t, (struct pt_regs *)bpf_task_pt_regs((void *)t), c->nr, 0); }
SEC("tracepoint")
int call_exit(struct call *c)
{ struct task_struct *t = current_task(); return change(t, (struct pt_regs *)bpf_task_pt_regs((void *)t), c->nr, 1); }

/*
 * io_uring changes mappings without the system call, later, and from kernel
 * threads. Such a request is published as a change of everything, and the
 * flag stops all caching from then on: when it takes effect is not known.
 */
SEC("raw_tp/io_uring_submit_req")
int uring_submit(struct bpf_raw_tracepoint_args *args)
{
	struct io_kiocb *req = (struct io_kiocb *)args->args[0];
	if (BPF_CORE_READ(req, opcode) != 25 /* IORING_OP_MADVISE */)
		return 0;
	struct shared *log = log_of(own_space(current_task()));
	if (!log)
		return 0;
	log->control.blind = 1;
	return publish_watched(log, 0, EVERYTHING);
}

static __always_inline int zap(struct vm_area_struct *vma, __u64 start, __u64 end)
{
	return publish(log_of(space_of(mm_of(vma))), start, end);
}

SEC("fentry/unmap_page_range")
int BPF_PROG(zap_enter, void *tlb, struct vm_area_struct *vma, ulong start, ulong end) { return zap(vma, start, end); }
SEC("fexit/unmap_page_range")
int BPF_PROG(zap_exit, void *tlb, struct vm_area_struct *vma, ulong start, ulong end) { return zap(vma, start, end); }
SEC("fentry/__unmap_hugepage_range")
int BPF_PROG(zap_huge_enter, void *tlb, struct vm_area_struct *vma, ulong start, ulong end) { return zap(vma, start, end); }
SEC("fexit/__unmap_hugepage_range")
int BPF_PROG(zap_huge_exit, void *tlb, struct vm_area_struct *vma, ulong start, ulong end) { return zap(vma, start, end); }

/* Up to Linux 6.15. */
SEC("fentry/move_page_tables")
int BPF_PROG(move_enter, struct vm_area_struct *vma, ulong old, struct vm_area_struct *new_vma, ulong new_addr, ulong len)
{ return zap(vma, old, old + len); }
SEC("fexit/move_page_tables")
int BPF_PROG(move_exit, struct vm_area_struct *vma, ulong old, struct vm_area_struct *new_vma, ulong new_addr, ulong len)
{ return zap(vma, old, old + len); }
/* Since Linux 6.16. At exit the structure has advanced, so the entry's values are not there any more. */
SEC("fentry/move_page_tables")
int BPF_PROG(move_enter_pmc, struct pagetable_move_control *pmc)
{ return zap(pmc->old, pmc->old_addr, pmc->old_addr + pmc->len_in); }
SEC("fexit/move_page_tables")
int BPF_PROG(move_exit_pmc, struct pagetable_move_control *pmc)
{ return zap(pmc->old, pmc->old_addr - pmc->len_in, pmc->old_addr + pmc->len_in); }
