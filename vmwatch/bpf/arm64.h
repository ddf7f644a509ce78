/* What watch.bpf.c has to know of AArch64. */
struct pt_regs { __u64 regs[31]; __u64 orig_x0; __s32 syscallno; } CORE;
struct mm_struct { ulong brk, mmap_base; } CORE;
struct task_struct { struct mm_struct *mm; struct files_struct *files; } CORE;

/*
 * The kernel does not number address spaces here. Where it has one in its own memory tells those apart that exist; and where
 * mappings begin, which is chosen at random by execve(2) and never changes, those that have ended, unless one was forked
 * by the other. Then the kernel finds that there is a log already, and the process does without (bpfcall_unsafe.go, addLog).
 */
static __always_inline __u64 space_of(struct mm_struct *mm)
{
	return mm ? (__u64)mm + BPF_CORE_READ(mm, mmap_base) * 0x9e3779b97f4a7c15ULL : 0;
}
/* Not vma->vm_mm: the verifier lets nobody compute with what it knows for a pointer. */
static __always_inline struct mm_struct *mm_of(struct vm_area_struct *vma) { return BPF_CORE_READ(vma, vm_mm); }

/* System calls: their numbers, arguments, and what they have returned, which is where the first argument was. */
enum { MMAP = 222, MUNMAP = 215, BRK = 214, MREMAP = 216, MADVISE = 233, SHMAT = 196, PROCESS_MADVISE = 440 };
#define NUMBER(regs) ((regs)->syscallno)
#define FIRST(regs, exit) ((exit) ? (regs)->orig_x0 : (regs)->regs[0])
#define SECOND(regs) ((regs)->regs[1])
#define THIRD(regs) ((regs)->regs[2])
#define FOURTH(regs) ((regs)->regs[3])
#define FIFTH(regs) ((regs)->regs[4])
#define RETURNED(regs) ((regs)->regs[0])

#define ADDRESS_BITS 56 /* above them are tags, which the processor and the kernel ignore */
volatile const __u64 page_mask = 0xfff; /* the loader sets it: pages have 4, 16 or 64 KiB */

/* A thread can't leave AArch64 but by execve(2). */
static __always_inline int is_foreign(struct task_struct *task) { return 0; }

static __always_inline __u64 native(__u64 nr) { return nr; }
