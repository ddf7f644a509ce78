//go:build linux && cgo

package ibv

// #include "ibv.h"
import "C"

// PD is a protection domain: queue pairs reach the memory regions of theirs only.
type PD struct{ c *C.struct_v_pd }

// AllocPD makes a protection domain.
func (c *Context) AllocPD() (*PD, error) {
	pd, err := C.v_alloc_pd(c.c)
	if pd == nil {
		return nil, errno(err)
	}
	return &PD{pd}, nil
}

// Dealloc removes the protection domain; EBUSY while it has children.
func (p *PD) Dealloc() error {
	if r, err := C.v_dealloc_pd(p.c); r != 0 {
		return errno(err)
	}
	return nil
}

// MR is a memory region.
type MR struct{ c *C.struct_v_mr }

// RegMR pins and registers memory (ibv_reg_mr); access is an OR of enum
// ibv_access_flags. The address is a number on purpose: the memory must not
// be the Go heap's, and nothing here keeps it alive.
func (p *PD) RegMR(addr uintptr, length uint64, access uint32) (*MR, error) {
	mr, err := C.v_reg_mr(p.c, C.uintptr_t(addr), C.size_t(length), C.unsigned(access))
	if mr == nil {
		return nil, errno(err)
	}
	return &MR{mr}, nil
}

// Dereg unpins. On an error, EBUSY while a memory window is bound to it, the
// region is unchanged.
func (m *MR) Dereg() error {
	if r, err := C.v_dereg_mr(m.c); r != 0 {
		return errno(err)
	}
	return nil
}

// Keys returns the keys for local and for remote use.
func (m *MR) Keys() (lkey, rkey uint32) { return uint32(m.c.lkey), uint32(m.c.rkey) }
