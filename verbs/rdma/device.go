//go:build linux && cgo

package rdma

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/memlock"
	"pinwheel/verbs/rdma/internal/ibv"
)

// Device is an open RDMA device and one of its ports. All methods are safe
// for concurrent use.
type Device struct {
	ctx  *ibv.Context
	info DeviceInfo
	attr ibv.DeviceAttr

	// mu protects what follows; a leaf lock. libibverbs would free the context
	// under the feet of what was made from it, so that is counted.
	mu       sync.Mutex
	children int
	closed   bool
}

// retain counts a child, unless the device is closed.
func (d *Device) retain() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.children++
	}
	return !d.closed
}

func (d *Device) release() {
	d.mu.Lock()
	d.children--
	d.mu.Unlock()
}

// Probe returns nil if this process can open a device, else one line that
// says what is missing.
func Probe() error {
	d, err := OpenDevice("")
	if err != nil {
		return err
	}
	return d.Close()
}

// Devices lists the ports of all devices. It opens each for a moment; one that
// can't be opened is left out. Without any, it fails as Probe does.
func Devices() ([]DeviceInfo, error) {
	var all []DeviceInfo
	err := eachPort(func(_ *ibv.Context, _ ibv.DeviceAttr, info DeviceInfo) bool {
		all = append(all, info)
		return false
	})
	return all, err
}

// OpenDevice opens the device "name" or "name:port". An empty string stands
// for the first device with an active port.
func OpenDevice(which string) (*Device, error) {
	name, port, err := parseDevice(which)
	if err != nil {
		return nil, err
	}
	var found *Device
	err = eachPort(func(ctx *ibv.Context, attr ibv.DeviceAttr, info DeviceInfo) bool {
		if name == "" && !info.Active || name != "" && name != info.Name || port != 0 && port != info.Port {
			return false
		}
		found = &Device{ctx: ctx, info: info, attr: attr}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return found, nil
	case which == "":
		return nil, fmt.Errorf("rdma unavailable: no device has an active port: %w", verbs.ErrUnsupported)
	}
	return nil, fmt.Errorf("rdma unavailable: no device %q: %w", which, verbs.ErrUnsupported)
}

// parseDevice splits "name:port"; port 0 stands for any.
func parseDevice(s string) (name string, port uint8, err error) {
	name, digits, given := strings.Cut(s, ":")
	if !given {
		return name, 0, nil
	}
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || n == 0 || name == "" {
		return "", 0, fmt.Errorf("rdma device %q is not a name or name:port: %w", s, verbs.ErrUnsupported)
	}
	return name, uint8(n), nil
}

// eachPort opens one device after the other and calls f with each of its
// ports until f returns true: f then owns that context.
func eachPort(f func(*ibv.Context, ibv.DeviceAttr, DeviceInfo) (keep bool)) error {
	if err := ibv.Load(); err != nil {
		return fmt.Errorf("rdma unavailable: %w: %w", err, verbs.ErrUnsupported)
	}
	names, err := ibv.Devices()
	if err != nil && !errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("rdma unavailable: %w", verbs.Fail("ibv_get_device_list", mem.Range{}, errnoOf(err)))
	}
	if len(names) == 0 {
		return fmt.Errorf("rdma unavailable: no device (see rdma link; without hardware: modprobe rdma_rxe): %w", verbs.ErrUnsupported)
	}
	var failed error
	opened := false
	for _, name := range names {
		kept, err := eachPortOf(name, f)
		if kept {
			return nil
		}
		if err != nil {
			failed = fmt.Errorf("rdma unavailable: %s: %w", name, err)
		}
		opened = opened || err == nil
	}
	if opened {
		return nil
	}
	return failed
}

func eachPortOf(name string, f func(*ibv.Context, ibv.DeviceAttr, DeviceInfo) bool) (kept bool, err error) {
	ctx, err := ibv.OpenDevice(name)
	if err != nil {
		return false, verbs.Fail("ibv_open_device", mem.Range{}, errnoOf(err))
	}
	defer func() {
		if !kept {
			_ = ctx.Close() // has no children
		}
	}()
	attr, err := ctx.QueryDevice()
	if err != nil {
		return false, verbs.Fail("ibv_query_device_ex", mem.Range{}, errnoOf(err))
	}
	for port := uint8(1); port >= 1 && int(port) <= attr.PortsOfHCA; port++ {
		p, err := ctx.QueryPort(port)
		if err != nil {
			return false, verbs.Fail("ibv_query_port", mem.Range{}, errnoOf(err))
		}
		info := DeviceInfo{Name: name, Port: port, Active: p.Active, Link: "InfiniBand"}
		if p.Ethernet {
			info.Link = "RoCE"
		}
		if p.Active {
			info.MTU = 128 << p.MTU // enum ibv_mtu: 1 is 256 bytes
		}
		if f(ctx, attr, info) {
			return true, nil
		}
	}
	return false, nil
}

// Info describes the device and its port as they were when it was opened.
func (d *Device) Info() DeviceInfo { return d.info }

// Check asks the kernel whether the port is active, and fails with the reason why it is not.
func (d *Device) Check() error {
	p, err := d.ctx.QueryPort(d.info.Port)
	switch {
	case err != nil:
		return verbs.Fail("ibv_query_port", mem.Range{}, errnoOf(err))
	case !p.Active:
		return fmt.Errorf("port %d of %s is down", d.info.Port, d.info.Name)
	}
	return nil
}

// Verbs returns the device's context, for package rc.
func (d *Device) Verbs() *ibv.Context { return d.ctx }

// Attr returns the device's attributes, for package rc.
func (d *Device) Attr() ibv.DeviceAttr { return d.attr }

// maxPages is the largest number of pages that the kernel pins for one region:
// ib_umem_get in drivers/infiniband/core/umem.c counts them in an unsigned int.
const maxPages = 1<<32 - 1

func (d *Device) limits() verbs.Limits {
	l := verbs.Limits{
		MaxRegions:     int64(d.attr.MaxMR),
		MaxRegionBytes: int64(min(d.attr.MaxMRBytes, maxPages*mem.PageSize)),
	}
	l.MaxPinnedBytes, l.PinnedSource = memlock.Limit()
	return l
}

// Close closes the device. It fails with verbs.ErrBusy, and may be called
// again, while a provider of it is open; once it has succeeded it
// does nothing.
func (d *Device) Close() error {
	const op = "ibv_close_device"
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if d.children > 0 {
		return &verbs.Error{Op: op, Kind: verbs.ErrBusy}
	}
	if err := d.ctx.Close(); err != nil {
		return verbs.Fail(op, mem.Range{}, errnoOf(err))
	}
	d.closed = true
	return nil
}
