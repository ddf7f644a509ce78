#include "textflag.h"

// Numbers of <asm/unistd_64.h>.
#define SYS_read 0
#define SYS_poll 7
#define SYS_clone 56
#define SYS_exit 60

// Offsets in readerShared; reader_unsafe.go asserts them.
#define GENERATION 0
#define PUBLISHED 64
#define POLL_UFFD 128
#define POLL_STOP 136
#define RING 4096
#define SLOT_MASK 4095
#define SLOT_SHIFT 5

// func spawnReader(flags, stack uintptr, shared *readerShared, tid *uint32) int
//
// The child has no Go runtime and no C library under it: only registers, one
// small stack that it never uses, and the shared memory.
TEXT ·spawnReader(SB), NOSPLIT, $0-40
	MOVQ	flags+0(FP), DI
	MOVQ	stack+8(FP), SI
	MOVQ	shared+16(FP), R12
	XORL	DX, DX
	MOVQ	tid+24(FP), R10
	XORL	R8, R8
	MOVL	$SYS_clone, AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	wait
	MOVQ	AX, ret+32(FP)
	RET

wait:
	LEAQ	POLL_UFFD(R12), DI
	MOVL	$2, SI
	MOVQ	$-1, DX
	MOVL	$SYS_poll, AX
	SYSCALL
	TESTQ	AX, AX
	JLE	wait
	MOVWLZX	(POLL_STOP+6)(R12), AX // revents
	TESTL	AX, AX
	JNE	stop
	MOVWLZX	(POLL_UFFD+6)(R12), AX
	TESTL	$0x38, AX // POLLERR, POLLHUP, POLLNVAL: the program closed it, which disarmed everything
	JNE	stop

	// The generation moves before read: read is what releases the thread
	// that made the change, so it never returns with the old generation.
	LOCK
	INCQ	GENERATION(R12)
	MOVQ	PUBLISHED(R12), BX
	MOVQ	BX, R13
	ANDQ	$SLOT_MASK, R13
	SHLQ	$SLOT_SHIFT, R13
	LEAQ	RING(R12)(R13*1), SI
	MOVQ	$0, (SI) // no event, should read fail
	MOVL	POLL_UFFD(R12), DI
	MOVL	$32, DX // sizeof(struct uffd_msg)
	MOVL	$SYS_read, AX
	SYSCALL
	INCQ	BX
	XCHGQ	BX, PUBLISHED(R12)
	JMP	wait

stop:
	XORL	DI, DI
	MOVL	$SYS_exit, AX // this thread only
	SYSCALL
	INT	$3
