//go:build linux && cgo

package ibv

// #include "ibv.h"
import "C"

import "syscall"

// Context is an open device (struct ibv_context).
type Context struct{ c *C.struct_v_context }

// OpenDevice opens the device of that name; ENODEV if there is none.
func OpenDevice(name string) (*Context, error) {
	var opened *C.struct_v_context
	err := eachDevice(func(n string, d *C.struct_v_device) error {
		if n != name {
			return nil
		}
		c, err := C.v_open_device(d)
		if c == nil {
			return errno(err)
		}
		opened = c
		return errStop
	})
	if err != nil {
		return nil, err
	}
	if opened == nil {
		return nil, syscall.ENODEV
	}
	return &Context{opened}, nil
}

// Close closes the device; EBUSY while it has children.
func (c *Context) Close() error {
	if r, err := C.v_close_device(c.c); r != 0 {
		return errno(err)
	}
	return nil
}

// DeviceAttr is the part of struct ibv_device_attr_ex that is used.
type DeviceAttr struct {
	MaxMRBytes uint64 // bytes of one memory region
	MaxMR      int    // memory regions of the device, all processes together
	MaxRDAtom  int    // RDMA reads and atomics a queue pair serves at a time
	MaxInitRD  int    // and issues at a time
	Atomic     bool   // the device does atomics
	OnDemand   bool   // it registers without pinning (on-demand paging)
	PortsOfHCA int
}

// QueryDevice asks the device for its limits (ibv_query_device_ex, or
// ibv_query_device where it has no extended query).
func (c *Context) QueryDevice() (DeviceAttr, error) {
	var a C.struct_v_device_attr_ex
	if r, err := C.v_query_device(c.c, &a); r != 0 {
		return DeviceAttr{}, errno(err)
	}
	return DeviceAttr{
		MaxMRBytes: uint64(a.orig.max_mr_size),
		MaxMR:      int(a.orig.max_mr),
		MaxRDAtom:  int(a.orig.max_qp_rd_atom),
		MaxInitRD:  int(a.orig.max_qp_init_rd_atom),
		Atomic:     a.orig.atomic_cap != 0,
		OnDemand:   a.odp.general&C.V_ODP_SUPPORT != 0,
		PortsOfHCA: int(a.orig.phys_port_cnt),
	}, nil
}

// PortAttr is the part of struct ibv_port_attr that is used.
type PortAttr struct {
	Active     bool
	Ethernet   bool // RoCE; otherwise InfiniBand
	MTU        int  // enum ibv_mtu: 1 is 256 bytes, 5 is 4096
	LID        uint16
	GIDs       int // length of the GID table
	MaxMessage uint32
}

// QueryPort describes a port; ports count from 1.
func (c *Context) QueryPort(port uint8) (PortAttr, error) {
	var a C.struct_v_port_attr
	if r, err := C.v_query_port(c.c, C.uint8_t(port), &a); r != 0 {
		return PortAttr{}, errno(err)
	}
	return PortAttr{
		Active:     a.state == C.V_PORT_ACTIVE,
		Ethernet:   a.link_layer == C.V_LINK_LAYER_ETHERNET,
		MTU:        int(a.active_mtu),
		LID:        uint16(a.lid),
		GIDs:       int(a.gid_tbl_len),
		MaxMessage: uint32(a.max_msg_sz),
	}, nil
}

// GID returns an entry of the GID table of a port.
func (c *Context) GID(port uint8, index int) (gid [16]byte, err error) {
	var raw [16]C.uint8_t
	if r, err := C.v_query_gid(c.c, C.uint8_t(port), C.int(index), &raw[0]); r != 0 {
		return gid, errno(err)
	}
	for i, b := range raw {
		gid[i] = byte(b)
	}
	return gid, nil
}
