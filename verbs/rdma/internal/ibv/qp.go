//go:build linux && cgo

package ibv

// #include "ibv.h"
import "C"

// QP is a reliable-connected queue pair; every request gives a completion.
type QP struct {
	c      *C.struct_v_qp
	inline uint32 // bytes
}

// CreateQP makes a queue pair for so many outstanding requests of each kind,
// one scatter-gather element each, of which so many bytes can be inline.
func (p *PD) CreateQP(cq *CQ, sends, recvs, inline int) (*QP, error) {
	caps := C.struct_v_qp_cap{
		max_send_wr: C.uint32_t(sends), max_recv_wr: C.uint32_t(recvs), max_send_sge: 1, max_recv_sge: 1,
		max_inline_data: C.uint32_t(inline),
	}
	qp, err := C.v_create_qp(p.c, cq.c, cq.c, &caps)
	if qp == nil {
		return nil, errno(err)
	}
	return &QP{qp, uint32(caps.max_inline_data)}, nil
}

// MaxInline returns the most bytes of a request with inline data, which may be more than was asked for.
func (q *QP) MaxInline() uint64 { return uint64(q.inline) }

// Number returns the queue pair's number, by which the peer addresses it.
func (q *QP) Number() uint32 { return uint32(q.c.qp_num) }

func (q *QP) modify(a *C.struct_v_qp_attr, mask C.int) error {
	if r, err := C.v_modify_qp(q.c, a, mask); r != 0 {
		return errno(err)
	}
	return nil
}

// Init takes the queue pair from RESET to INIT: receives may be posted.
func (q *QP) Init(port uint8, remoteAccess uint32) error {
	a := C.struct_v_qp_attr{qp_state: C.V_QPS_INIT, port_num: C.uint8_t(port), qp_access_flags: C.unsigned(remoteAccess)}
	return q.modify(&a, C.V_QP_STATE|C.V_QP_PKEY_INDEX|C.V_QP_PORT|C.V_QP_ACCESS_FLAGS)
}

// Path is what a queue pair must know of its peer and the way there.
type Path struct {
	PeerQP   uint32
	PeerPSN  uint32 // 24 bits: the peer's first packet sequence number
	PeerLID  uint16 // InfiniBand only
	PeerGID  [16]byte
	UseGID   bool // always with RoCE
	GIDIndex int  // of the local port
	Port     uint8
	MTU      int // enum ibv_mtu
	Reads    int // RDMA reads of the peer served at a time
	RNRTimer uint8
}

// ReadyToReceive takes the queue pair from INIT to RTR.
func (q *QP) ReadyToReceive(p Path) error {
	a := C.struct_v_qp_attr{
		qp_state:           C.V_QPS_RTR,
		path_mtu:           C.int(p.MTU),
		dest_qp_num:        C.uint32_t(p.PeerQP),
		rq_psn:             C.uint32_t(p.PeerPSN),
		max_dest_rd_atomic: C.uint8_t(p.Reads),
		min_rnr_timer:      C.uint8_t(p.RNRTimer),
	}
	a.ah_attr.port_num = C.uint8_t(p.Port)
	a.ah_attr.dlid = C.uint16_t(p.PeerLID)
	if p.UseGID {
		a.ah_attr.is_global = 1
		a.ah_attr.grh.sgid_index = C.uint8_t(p.GIDIndex)
		a.ah_attr.grh.hop_limit = 64
		*(*[16]byte)(a.ah_attr.grh.dgid[:]) = p.PeerGID
	}
	return q.modify(&a, C.V_QP_STATE|C.V_QP_AV|C.V_QP_PATH_MTU|C.V_QP_DEST_QPN|C.V_QP_RQ_PSN|
		C.V_QP_MAX_DEST_RD_ATOMIC|C.V_QP_MIN_RNR_TIMER)
}

// ReadyToSend takes the queue pair from RTR to RTS. psn is the first packet
// sequence number, as told to the peer; reads is how many RDMA reads it may
// have under way; the other three are the fields of ibv_modify_qp(3).
func (q *QP) ReadyToSend(psn uint32, reads int, timeout, retries, rnrRetries uint8) error {
	a := C.struct_v_qp_attr{
		qp_state:      C.V_QPS_RTS,
		sq_psn:        C.uint32_t(psn),
		max_rd_atomic: C.uint8_t(reads),
		timeout:       C.uint8_t(timeout),
		retry_cnt:     C.uint8_t(retries),
		rnr_retry:     C.uint8_t(rnrRetries),
	}
	return q.modify(&a, C.V_QP_STATE|C.V_QP_SQ_PSN|C.V_QP_MAX_QP_RD_ATOMIC|C.V_QP_TIMEOUT|C.V_QP_RETRY_CNT|C.V_QP_RNR_RETRY)
}

// Fail takes the queue pair to ERROR: all that is posted completes as flushed.
func (q *QP) Fail() error {
	return q.modify(&C.struct_v_qp_attr{qp_state: C.V_QPS_ERR}, C.V_QP_STATE)
}

// Operations of PostSend: enum ibv_wr_opcode.
const (
	OpWrite = 0
	OpSend  = 2
	OpRead  = 4
)

// SGE is a piece of local memory: struct ibv_sge.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

func (s SGE) c() C.struct_v_sge {
	return C.struct_v_sge{addr: C.uint64_t(s.Addr), length: C.uint32_t(s.Length), lkey: C.uint32_t(s.LKey)}
}

// PostSend posts a request to the send queue; ENOMEM if that is full. OpSend
// ignores the remote address and key. An inline request is copied before the
// call returns, and needs no local key; OpRead has none.
func (q *QP) PostSend(id uint64, op int, inline bool, local SGE, remoteAddr uint64, rkey uint32) error {
	flags := C.unsigned(0)
	if inline {
		flags = C.V_SEND_INLINE
	}
	r, err := C.v_post_send(q.c, C.uint64_t(id), C.int(op), flags, local.c(), C.uint64_t(remoteAddr), C.uint32_t(rkey))
	if r != 0 {
		return errno(err)
	}
	return nil
}

// PostRecv posts a receive buffer; ENOMEM if the queue is full.
func (q *QP) PostRecv(id uint64, local SGE) error {
	if r, err := C.v_post_recv(q.c, C.uint64_t(id), local.c()); r != 0 {
		return errno(err)
	}
	return nil
}

// Destroy removes the queue pair.
func (q *QP) Destroy() error {
	if r, err := C.v_destroy_qp(q.c); r != 0 {
		return errno(err)
	}
	return nil
}
