package vmwatch

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The types that the programs are adapted by are those that the library would find among all of them.
func TestKernelTypesAreThoseOfTheKernel(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		t.Skip("no BTF of the kernel: ", err)
	}
	if len(bpfObject) == 0 {
		t.Skip("no BPF programs for this processor")
	}
	programs, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(bpfObject))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := readKernelTypes(programs.Types)
	if err != nil {
		t.Fatal(err)
	}
	members := 0
	for _, name := range coreStructs {
		var local, got, want *btf.Struct
		if err := programs.Types.TypeByName(name, &local); err != nil {
			t.Fatal(err)
		}
		if kernel.TypeByName(name, &want) != nil {
			if ours.TypeByName(name, &got) == nil {
				t.Errorf("%s: the kernel has none", name)
			}
			continue
		}
		if err := ours.TypeByName(name, &got); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Size != want.Size {
			t.Errorf("%s: %d bytes, want %d", name, got.Size, want.Size)
		}
		for _, m := range local.Members {
			wantBits, inKernel := offsetOf(want, m.Name)
			gotBits, found := offsetOf(got, m.Name)
			if found != inKernel || gotBits != wantBits {
				t.Errorf("%s.%s: at bit %d (%v), want %d (%v)", name, m.Name, gotBits, found, wantBits, inKernel)
			}
			members++
		}
	}
	if members < 10 {
		t.Errorf("%d members were compared", members)
	}
}

// offsetOf returns the offset in bits of a member, also of an unnamed structure within.
func offsetOf(of btf.Type, name string) (btf.Bits, bool) {
	var members []btf.Member
	switch of := of.(type) {
	case *btf.Struct:
		members = of.Members
	case *btf.Union:
		members = of.Members
	}
	for _, m := range members {
		if m.Name == name {
			return m.Offset, true
		}
		if m.Name == "" {
			if bits, found := offsetOf(btf.UnderlyingType(m.Type), name); found {
				return m.Offset + bits, true
			}
		}
	}
	return 0, false
}

func TestDamagedBTFIsRefused(t *testing.T) {
	for _, raw := range [][]byte{nil, {0x9f, 0xeb, 1, 0}, bytes.Repeat([]byte{0x9f, 0xeb, 1, 0xff}, 100)} {
		if _, err := scanBTF(raw, coreStructs); err == nil {
			t.Errorf("%d bytes were taken for BTF", len(raw))
		}
	}
}
