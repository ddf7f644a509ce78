#include "textflag.h"

// Numbers of <asm-generic/unistd.h>.
#define SYS_read 63
#define SYS_ppoll 73
#define SYS_exit 93
#define SYS_clone 220

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
// The child has no Go runtime and no C library under it: only registers, which
// the kernel leaves as they are but for R0, one small stack that it never uses,
// and the shared memory.
TEXT ·spawnReader(SB), NOSPLIT, $0-40
	MOVD	flags+0(FP), R0
	MOVD	stack+8(FP), R1
	MOVD	shared+16(FP), R19
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	tid+24(FP), R4 // after the thread pointer here (CONFIG_CLONE_BACKWARDS)
	MOVD	$SYS_clone, R8
	SVC
	CBZ	R0, wait
	MOVD	R0, ret+32(FP)
	RET

wait:
	ADD	$POLL_UFFD, R19, R0
	MOVD	$2, R1
	MOVD	ZR, R2 // no timeout
	MOVD	ZR, R3 // no mask
	MOVD	ZR, R4
	MOVD	$SYS_ppoll, R8
	SVC
	CMP	$0, R0
	BLE	wait
	MOVHU	(POLL_STOP+6)(R19), R0 // revents
	CBNZ	R0, stop
	MOVHU	(POLL_UFFD+6)(R19), R0
	TST	$0x38, R0 // POLLERR, POLLHUP, POLLNVAL: the program closed it, which disarmed everything
	BNE	stop

	// The generation moves before read: read is what releases the thread
	// that made the change, so it never returns with the old generation.
	ADD	$GENERATION, R19, R0
again:
	LDAXR	(R0), R1
	ADD	$1, R1
	STLXR	R1, (R0), R2
	CBNZ	R2, again
	DMB	$0xb // ISH: for every thread of the process, whatever the kernel orders
	ADD	$PUBLISHED, R19, R20
	MOVD	(R20), R21
	AND	$SLOT_MASK, R21, R1
	LSL	$SLOT_SHIFT, R1, R1
	ADD	$RING, R1, R1
	ADD	R19, R1, R1
	MOVD	ZR, (R1) // no event, should read fail
	MOVW	POLL_UFFD(R19), R0
	MOVD	$32, R2 // sizeof(struct uffd_msg)
	MOVD	$SYS_read, R8
	SVC
	ADD	$1, R21, R21
	STLR	R21, (R20) // after the message
	B	wait

stop:
	MOVD	ZR, R0
	MOVD	$SYS_exit, R8 // this thread only
	SVC
	UNDEF
