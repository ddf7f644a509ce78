package vmwatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// coreStructs are the structures of the kernel that bpf/watch.bpf.c reads.
var coreStructs = []string{
	"pt_regs", "mm_struct", "thread_info", "task_struct", "vm_area_struct", "io_kiocb", "pagetable_move_control",
}

// readKernelTypes returns coreStructs as the running kernel lays them out, with those members that
// the programs name. The library could read them too, but it makes an index of all 100,000 types of
// the kernel first: 20 ms of processor time at the start of every process.
func readKernelTypes(programs *btf.Spec) (*btf.Spec, error) {
	f, err := os.Open("/sys/kernel/btf/vmlinux")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err == nil { // since Linux 6.16
		defer unix.Munmap(raw)
	} else if raw, err = os.ReadFile(f.Name()); err != nil {
		return nil, err
	}
	kernel, err := scanBTF(raw, coreStructs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	made := map[string]*btf.Struct{}
	builder, err := btf.NewBuilder(nil, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range coreStructs { // those within others come first
		var local *btf.Struct
		if err := programs.TypeByName(name, &local); err != nil {
			return nil, err
		}
		if made[name] = kernel.layOut(local, made); made[name] == nil {
			continue // this kernel has none: what needs it does not load
		}
		if _, err := builder.Add(made[name]); err != nil {
			return nil, err
		}
	}
	return builder.Spec()
}

// Kinds of types, <linux/btf.h>, Linux 4.18 to 5.16.
const (
	btfInt      = 1
	btfPtr      = 2
	btfArray    = 3
	btfStruct   = 4
	btfUnion    = 5
	btfEnum     = 6
	btfTypedef  = 8
	btfVolatile = 9
	btfConst    = 10
	btfRestrict = 11
	btfProto    = 13
	btfVar      = 14
	btfDatasec  = 15
	btfDeclTag  = 17
	btfTypeTag  = 18
	btfEnum64   = 19
)

// btfExtra is the size of what follows the 12 bytes of a type: a part of its own, and one for each
// of its members.
var btfExtra = [btfEnum64 + 1]struct{ own, member uint32 }{
	btfInt: {own: 4}, btfArray: {own: 12}, btfStruct: {member: 12}, btfUnion: {member: 12}, btfEnum: {member: 8},
	btfProto: {member: 8}, btfVar: {own: 4}, btfDatasec: {member: 12}, btfDeclTag: {own: 4}, btfEnum64: {member: 12},
}

// kernelBTF is the BTF of the kernel: Documentation/bpf/btf.rst. All numbers are those of this machine.
type kernelBTF struct {
	types, strings []byte
	at             []uint32          // of each type in types, by ID
	structs        map[string]uint32 // IDs
}

var errBTF = errors.New("not BTF that is understood here")

// scanBTF finds structures by name, in one pass.
func scanBTF(raw []byte, names []string) (k *kernelBTF, err error) {
	defer func() { // the file is the kernel's, and a fault in it is no reason to fail
		if recover() != nil {
			k, err = nil, errBTF
		}
	}()
	u32 := binary.NativeEndian.Uint32
	if binary.NativeEndian.Uint16(raw) != 0xeb9f || raw[2] != 1 {
		return nil, errBTF
	}
	body := raw[u32(raw[4:]):]
	k = &kernelBTF{structs: make(map[string]uint32)}
	k.types = body[u32(raw[8:]):][:u32(raw[12:])]
	k.strings = body[u32(raw[16:]):][:u32(raw[20:])]
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	k.at = make([]uint32, 1, len(k.types)/24) // ID 0 is void
	for at := uint32(0); at < uint32(len(k.types)); {
		info := u32(k.types[at+4:])
		kind, members := info>>24&0x1f, info&0xffff
		if kind >= uint32(len(btfExtra)) {
			return nil, errBTF
		}
		if kind == btfStruct && members > 0 {
			if name := k.name(u32(k.types[at:])); wanted[string(name)] {
				if k.structs[string(name)] != 0 {
					return nil, fmt.Errorf("two structures %s", name)
				}
				k.structs[string(name)] = uint32(len(k.at))
			}
		}
		k.at = append(k.at, at)
		at += 12 + btfExtra[kind].own + members*btfExtra[kind].member
	}
	return k, nil
}

// name returns the string at an offset.
func (k *kernelBTF) name(at uint32) []byte {
	end := at
	for k.strings[end] != 0 {
		end++
	}
	return k.strings[at:end]
}

// header returns what every type has: its kind, whether members have sizes in bits, the number of
// members, and its size in bytes or the type that it refers to.
func (k *kernelBTF) header(id uint32) (kind uint32, bitfields bool, members, size uint32) {
	t := k.types[k.at[id]:]
	info := binary.NativeEndian.Uint32(t[4:])
	return info >> 24 & 0x1f, info>>31 != 0, info & 0xffff, binary.NativeEndian.Uint32(t[8:])
}

// size returns the size of a type in bytes, 0 for one that has none or an array.
func (k *kernelBTF) size(id uint32) uint32 {
	for id != 0 {
		kind, _, _, size := k.header(id)
		switch kind {
		case btfTypedef, btfVolatile, btfConst, btfRestrict, btfTypeTag:
			id = size
		case btfPtr:
			return 8
		case btfInt, btfStruct, btfUnion, btfEnum, btfEnum64:
			return size
		default:
			return 0
		}
	}
	return 0
}

// member finds a member of a structure or union, also within unnamed ones: its offset in bits and its type.
func (k *kernelBTF) member(id uint32, name string) (bits, of uint32, found bool) {
	u32 := binary.NativeEndian.Uint32
	kind, bitfields, members, _ := k.header(id)
	if kind != btfStruct && kind != btfUnion {
		return 0, 0, false
	}
	for i := range members {
		m := k.types[k.at[id]+12+12*i:]
		offset, of := u32(m[8:]), u32(m[4:])
		if bitfields {
			if offset>>24 != 0 {
				continue
			}
			offset &= 0xffffff
		}
		at := u32(m)
		if at != 0 && string(k.name(at)) == name {
			return offset, of, true
		}
		if at == 0 {
			if bits, of, found := k.member(of, name); found {
				return offset + bits, of, true
			}
		}
	}
	return 0, 0, false
}

// layOut returns a structure of the programs with the kernel's offsets; nil if the kernel has none of that
// name. A member that the kernel lacks, or has in another size, is left out. Structures within it are
// taken from made.
func (k *kernelBTF) layOut(local *btf.Struct, made map[string]*btf.Struct) *btf.Struct {
	id := k.structs[local.Name]
	if id == 0 {
		return nil
	}
	_, _, _, size := k.header(id)
	out := &btf.Struct{Name: local.Name, Size: size}
	for _, m := range local.Members {
		bits, of, found := k.member(id, m.Name)
		if inner, ok := btf.As[*btf.Struct](m.Type); ok {
			if found = found && made[inner.Name] != nil && of == k.structs[inner.Name]; found {
				m.Type = made[inner.Name]
			}
		} else if n, err := btf.Sizeof(m.Type); err != nil || uint32(n) != k.size(of) {
			found = false
		} else if _, ok := btf.As[*btf.Pointer](m.Type); ok {
			m.Type = &btf.Pointer{Target: &btf.Void{}} // else the programs' idea of what it points to comes along
		}
		if found {
			m.Offset = btf.Bits(bits)
			out.Members = append(out.Members, m)
		}
	}
	return out
}
