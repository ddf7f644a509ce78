package profile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc64"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// describe finds out the build ID in the memory of this process: no file is opened, and it is right even where the file
// was replaced since.
func (c *code) describe() Module {
	return Module{Name: moduleName(c.module), Build: c.build()}
}

func (c *code) build() string {
	if id := noteOf(c.base); id != nil {
		return hex.EncodeToString(id)
	}
	return c.sample()
}

// Notes of <elf.h> that tell builds apart, by type and name.
const (
	noteGNUBuildID = 3 // NT_GNU_BUILD_ID, of "GNU"
	noteGoBuildID  = 4 // of "Go"

	maxNotes   = 64 << 10 // bytes
	maxHeaders = 256      // of a program
)

// noteOf returns the build ID of the ELF file whose first byte is mapped at base, or nil.
func noteOf(base mem.Addr) []byte {
	var h elf.Header64
	if !peekAs(base, &h) || !bytes.HasPrefix(h.Ident[:], []byte(elf.ELFMAG)) || h.Ident[elf.EI_CLASS] != byte(elf.ELFCLASS64) ||
		h.Phnum > maxHeaders || h.Phentsize != uint16(binary.Size(elf.Prog64{})) {
		return nil
	}
	programs := make([]elf.Prog64, h.Phnum)
	if !peekAs(base+mem.Addr(h.Phoff), programs) {
		return nil
	}
	var first uint64 // address of the file's first byte in the file's own terms
	for _, p := range programs {
		if elf.ProgType(p.Type) == elf.PT_LOAD && p.Off == 0 {
			first = p.Vaddr
		}
	}
	var ofGo []byte
	for _, p := range programs {
		if elf.ProgType(p.Type) != elf.PT_NOTE || p.Filesz > maxNotes {
			continue
		}
		notes := make([]byte, p.Filesz)
		if !peek(base+mem.Addr(p.Vaddr-first), notes) {
			continue
		}
		for len(notes) >= 12 {
			var n note
			if n, notes = cutNote(notes, p.Align); n.name == "GNU" && n.kind == noteGNUBuildID && len(n.text) > 0 {
				return n.text
			} else if n.name == "Go" && n.kind == noteGoBuildID {
				ofGo = n.text
			}
		}
	}
	return ofGo
}

type note struct {
	name string
	kind uint32
	text []byte
}

// cutNote returns the first note, and what follows it; nothing if it is cut off.
func cutNote(b []byte, align uint64) (n note, rest []byte) {
	if align != 8 {
		align = 4
	}
	nameBytes, textBytes := uint64(binary.NativeEndian.Uint32(b)), uint64(binary.NativeEndian.Uint32(b[4:]))
	up := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	at := up(12 + nameBytes)
	if at+textBytes > uint64(len(b)) {
		return n, nil
	}
	n = note{string(bytes.TrimRight(b[12:12+nameBytes], "\x00")), binary.NativeEndian.Uint32(b[8:]), b[at : at+textBytes]}
	return n, b[min(up(at+textBytes), uint64(len(b))):]
}

// sampleBytes is how much of a module without a build ID is looked at, at either end of its code.
const sampleBytes = 64 << 10

// sample tells builds apart where the linker has left no build ID. Almost any change moves the end of the code.
func (c *code) sample() string {
	b := make([]byte, min(sampleBytes, c.text.Len()))
	sum := crc64.Checksum(fmt.Append(nil, c.text.Len()), isoTable)
	for _, at := range []mem.Addr{c.text.Start, c.text.End - mem.Addr(len(b))} {
		if !peek(at, b) {
			return ""
		}
		sum = crc64.Update(sum, isoTable, b)
	}
	return fmt.Sprintf("code-%016x", sum)
}

var isoTable = crc64.MakeTable(crc64.ISO)

// peek copies memory of this process. What is not mapped is an error and no fault, as a library may be unloaded meanwhile.
func peek(at mem.Addr, to []byte) bool {
	if len(to) == 0 {
		return true
	}
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	n, err := unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(to)}}, 0)
	return err == nil && n == len(to)
}

// peekAs copies a structure, or a slice of them.
func peekAs(at mem.Addr, to any) bool {
	b := make([]byte, binary.Size(to))
	if !peek(at, b) {
		return false
	}
	_, err := binary.Decode(b, binary.NativeEndian, to)
	return err == nil
}
