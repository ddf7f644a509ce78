/* What watch.bpf.c has to know of x86-64. */
struct pt_regs { ulong r10, r8, ax, dx, si, di, orig_ax; } CORE;
typedef struct { __u64 ctx_id; } CORE mm_context_t;
struct mm_struct { ulong brk; mm_context_t context; } CORE;
struct thread_info { __u32 status; } CORE;
struct task_struct { struct thread_info thread_info; struct mm_struct *mm; struct files_struct *files; } CORE;

/* The kernel gives this number to no other address space, ever: so the log of a process that has ended receives nothing more. */
static __always_inline __u64 space_of(struct mm_struct *mm) { return BPF_CORE_READ(mm, context.ctx_id); }
static __always_inline struct mm_struct *mm_of(struct vm_area_struct *vma) { return vma->vm_mm; }

/* System calls: their numbers, arguments, and what they have returned. */
enum { MMAP = 9, MUNMAP = 11, BRK = 12, MREMAP = 25, MADVISE = 28, SHMAT = 30, PROCESS_MADVISE = 440 };
#define NUMBER(regs) ((regs)->orig_ax)
#define FIRST(regs, exit) ((regs)->di)
#define SECOND(regs) ((regs)->si)
#define THIRD(regs) ((regs)->dx)
#define FOURTH(regs) ((regs)->r10)
#define FIFTH(regs) ((regs)->r8)
#define RETURNED(regs) ((regs)->ax)

#define ADDRESS_BITS 57 /* linear address masking, Linux 6.4 */
#define page_mask 0xfffUL

/* Calls through int 0x80 have other numbers and registers: take each for a change of everything. */
static __always_inline int is_foreign(struct task_struct *task) { return (task->thread_info.status & 2) != 0; /* TS_COMPAT */ }

static __always_inline __u64 native(__u64 nr) { return nr & ~0x40000000UL; } /* x32 calls use the same numbers for these */
