package vmwatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// coreStructs are the structures of the kernel that bpf/watch.bpf.c reads. Those within others come first.
var coreStructs = append(innerStructs,
	"pt_regs", "mm_struct", "task_struct", "vm_area_struct", "io_kiocb", "pagetable_move_control",
	"file", "fdtable", "files_struct",
)

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
	for _, name := range coreStructs {
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
	marks          []uint32          // where in types each markEvery-th type is, by ID
	structs        map[string]uint32 // IDs
}

// markEvery is sparse: few types are looked up, and a mark for each of 100,000 would take longer to write.
const markEvery = 64

var errBTF = errors.New("not BTF that is understood here")

// scanBTF finds structures by name, in one pass.
func scanBTF(raw []byte, names []string) (k *kernelBTF, err error) {
	defer func() { // the file is the kernel's, and a fault in it is no reason to fail
		if recover() != nil {
			k, err = nil, errBTF
		}
	}()
	if binary.NativeEndian.Uint16(raw) != 0xeb9f || raw[2] != 1 {
		return nil, errBTF
	}
	body := raw[word(raw, 4):]
	k = &kernelBTF{structs: make(map[string]uint32)}
	k.types = body[word(raw, 8):][:word(raw, 12)]
	k.strings = body[word(raw, 16):][:word(raw, 20)]
	k.marks = make([]uint32, 0, len(k.types)/(20*markEvery))
	id := uint32(1) // 0 is void
	for at := uint32(0); at < uint32(len(k.types)); id++ {
		if id%markEvery == 1 {
			k.marks = append(k.marks, at)
		}
		info := word(k.types, at+4)
		if info>>24&0x1f == btfStruct && info&0xffff > 0 {
			if name := k.oneOf(names, word(k.types, at)); name != "" {
				if k.structs[name] != 0 {
					return nil, fmt.Errorf("two structures %s", name)
				}
				k.structs[name] = id
			}
		}
		at += bytesOfType(info)
	}
	return k, nil
}

func word(b []byte, at uint32) uint32 { return binary.NativeEndian.Uint32(b[at:]) }

// bytesOfType returns the size of the description of a type. It panics for kinds that it does not know.
func bytesOfType(info uint32) uint32 {
	extra := &btfExtra[info>>24&0x1f]
	return 12 + extra.own + info&0xffff*extra.member
}

// oneOf returns the name that is the string at an offset, or "".
func (k *kernelBTF) oneOf(names []string, at uint32) string {
	s := k.strings[at:]
	for _, name := range names {
		if s[0] == name[0] && string(s[:len(name)]) == name && s[len(name)] == 0 {
			return name
		}
	}
	return ""
}

// name returns the string at an offset.
func (k *kernelBTF) name(at uint32) []byte {
	s := k.strings[at:]
	return s[:bytes.IndexByte(s, 0)]
}

// at returns where in types a type is.
func (k *kernelBTF) at(id uint32) uint32 {
	at := k.marks[(id-1)/markEvery]
	for range (id - 1) % markEvery {
		at += bytesOfType(word(k.types, at+4))
	}
	return at
}

// header returns what every type has: its kind, whether members have sizes in bits, the number of
// members, and its size in bytes or the type that it refers to.
func (k *kernelBTF) header(id uint32) (kind uint32, bitfields bool, members, size uint32) {
	at := k.at(id)
	info := word(k.types, at+4)
	return info >> 24 & 0x1f, info>>31 != 0, info & 0xffff, word(k.types, at+8)
}

// size returns the size of a type in bytes, 0 for one that has none.
func (k *kernelBTF) size(id uint32) uint32 {
	id = k.underlying(id)
	if id == 0 {
		return 0
	}
	switch kind, _, _, size := k.header(id); kind {
	case btfPtr:
		return 8
	case btfArray: // its elements' type, that of their number, and how many there are
		of := k.types[k.at(id)+12:]
		return word(of, 8) * k.size(word(of, 0))
	case btfInt, btfStruct, btfUnion, btfEnum, btfEnum64:
		return size
	}
	return 0
}

// underlying returns what a type is without its names and qualifiers.
func (k *kernelBTF) underlying(id uint32) uint32 {
	for id != 0 {
		kind, _, _, of := k.header(id)
		switch kind {
		case btfTypedef, btfVolatile, btfConst, btfRestrict, btfTypeTag:
			id = of
		default:
			return id
		}
	}
	return 0
}

// member finds a member of a structure or union, also within unnamed ones: its offset in bits and its type.
func (k *kernelBTF) member(id uint32, name string) (bits, of uint32, found bool) {
	kind, bitfields, members, _ := k.header(id)
	if kind != btfStruct && kind != btfUnion {
		return 0, 0, false
	}
	first := k.at(id) + 12
	for i := range members {
		m := k.types[first+12*i:]
		offset, of := word(m, 8), word(m, 4)
		if bitfields {
			if offset>>24 != 0 {
				continue
			}
			offset &= 0xffffff
		}
		at := word(m, 0)
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
// taken from made, but for those that have no name, or only one by a typedef.
func (k *kernelBTF) layOut(local *btf.Struct, made map[string]*btf.Struct) *btf.Struct {
	id := k.structs[local.Name]
	if id == 0 {
		return nil
	}
	return k.layOutAs(id, local, made)
}

func (k *kernelBTF) layOutAs(id uint32, local *btf.Struct, made map[string]*btf.Struct) *btf.Struct {
	_, _, _, size := k.header(id)
	out := &btf.Struct{Name: local.Name, Size: size}
	for _, m := range local.Members {
		bits, of, found := k.member(id, m.Name)
		if inner, ok := btf.As[*btf.Struct](m.Type); ok && inner.Name == "" {
			if of = k.underlying(of); found {
				m.Type = k.layOutAs(of, inner, made)
			}
		} else if ok {
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
