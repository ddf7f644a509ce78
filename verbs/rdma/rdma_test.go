//go:build linux && cgo

package rdma_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/verbs/verbstest"
)

func TestConformance(t *testing.T) {
	rdmatest.Need(t)
	devices, err := rdma.Devices()
	if err != nil {
		t.Fatal(err)
	}
	call := unix.SYS_IOCTL // by which libibverbs asks the kernel
	if devices[0].Name == "sv0" {
		call = unix.SYS_IO_URING_REGISTER // by which lab/testbed/softverbs pins
	}
	verbstest.TestProvider(t, func(t testing.TB) verbs.Provider {
		p, err := rdma.Open(rdma.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}, verbstest.WithoutCall(call, syscall.ENOMEM), verbstest.ChecksMappings, verbstest.ChecksAccess)
}

// TestAbsenceIsOneLine runs on every machine: with a device it asks for one
// that does not exist.
func TestAbsenceIsOneLine(t *testing.T) {
	_, err := rdma.OpenDevice("nosuchdevice")
	if !errors.Is(err, verbs.ErrUnsupported) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that matches ErrUnsupported", err)
	}
	t.Log(err)
}

func TestDevicesListsWhatOpenDeviceOpens(t *testing.T) {
	rdmatest.Need(t)
	all, err := rdma.Devices()
	if err != nil || len(all) == 0 {
		t.Fatalf("Devices() = %v, %v", all, err)
	}
	for _, info := range all {
		d, err := rdma.OpenDevice(info.Name + ":1")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v, %+v", d.Info(), d.Attr())
		if d.Info() != info {
			t.Errorf("opened %+v, listed %+v", d.Info(), info)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if !info.Active {
			continue
		}
		p, err := rdma.Open(rdma.Options{Device: info.Name})
		if err != nil || p.Device().Info().Name != info.Name {
			t.Fatalf("asked for %s: opened %+v, %v", info.Name, p, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestVmPinIsUsage compares the kernel's account with ours while regions of
// several kinds, sizes and overlaps come and go.
func TestVmPinIsUsage(t *testing.T) {
	p := rdmatest.Open(t)
	start := verbstest.StatusBytes(t, "VmPin")
	check := func() {
		t.Helper()
		if got := verbstest.StatusBytes(t, "VmPin") - start; got != p.Usage().PinnedBytes {
			t.Fatalf("kernel pinned %d bytes, we count %d", got, p.Usage().PinnedBytes)
		}
	}
	_, all := verbstest.Map(t, 256*mem.PageSize)
	var held []verbs.Region
	for i, a := range []verbs.Access{
		0,
		verbs.AccessLocalWrite,
		verbs.AccessRemoteRead,
		verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic,
		verbs.AccessLocalWrite | verbs.AccessRelaxedOrdering,
	} {
		g, err := p.Register(mem.Range{Start: all.Start + mem.Addr(i*5000), End: all.End - mem.Addr(i*7000)}, a)
		if err != nil {
			t.Fatalf("access %#x: %v", a, err)
		}
		held = append(held, g)
		check()
	}
	for _, g := range held {
		if err := p.Deregister(g); err != nil {
			t.Fatal(err)
		}
		check()
	}
}

func TestWhatTheDeviceCannotDoIsUnsupported(t *testing.T) {
	p := rdmatest.Open(t)
	_, r := verbstest.Map(t, 4*mem.PageSize)
	g, err := p.Register(r, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	if p.Device().Attr().OnDemand {
		if err != nil || p.Usage().PinnedBytes != 0 {
			t.Errorf("on-demand region: %v, usage %+v", err, p.Usage())
		}
	} else if !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("on-demand region on a device without: %+v, %v", g, err)
	}
	if p.Usage().Regions != 0 && !p.Device().Attr().OnDemand {
		t.Errorf("failed registrations left %+v", p.Usage())
	}
}

func TestRemoteWriteNeedsLocalWrite(t *testing.T) {
	p := rdmatest.Open(t)
	_, r := verbstest.Map(t, mem.PageSize)
	if _, err := p.Register(r, verbs.AccessRemoteWrite); !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported: protection must not be widened silently", err)
	}
}

func TestClosingADeviceInUseIsBusy(t *testing.T) {
	rdmatest.Need(t)
	d, err := rdma.OpenDevice("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Fatalf("closing a device with an open provider: %v", err)
	}
	_, r := verbstest.Map(t, mem.PageSize)
	if _, err := p.Register(r, verbs.AccessLocalWrite); err != nil {
		t.Errorf("the provider is dead after the refused Close: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.NewProvider(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("provider of a closed device: %v", err)
	}
}

// BenchmarkRegisterTogether is that of package uring with a device.
func BenchmarkRegisterTogether(b *testing.B) {
	rdmatest.Need(b)
	for _, threads := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(threads, " threads"), func(b *testing.B) {
			p, err := rdma.Open(rdma.Options{})
			verbstest.Available(b, err)
			defer p.Close()
			verbstest.Together(b, p, threads, 32<<20)
		})
	}
}
