package trace

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Module is the program or a library that call sites of a rank are in. The upper 16 bits of a return address are the
// tag of its module, and the rest is the offset in its file as it is mapped; an address that is in no module stays as
// it was. The program's tag is 0. Traces before version 3 have no modules, and all addresses in them are relative to
// the program.
type Module struct {
	Tag   uint16
	Name  string // of its file, without directories
	Build string // build ID in hexadecimal; "" if there is none
}

func (t *tables) addModule(m Module) error {
	if len(t.modules) >= maxModules || len(m.Name) > maxStringBytes || len(m.Build) > maxStringBytes {
		return fmt.Errorf("%w: %d modules", ErrLimit, len(t.modules))
	}
	t.modules = append(t.modules, m)
	return nil
}

// DefineModule says in which module call sites are. It is called once for each, at any time.
func (rw *RankWriter) DefineModule(m Module) error {
	if err := rw.tables.addModule(m); err != nil {
		return rw.wrap(err)
	}
	rw.defs = binary.AppendUvarint(append(rw.defs, defModule), uint64(m.Tag))
	for _, s := range []string{m.Name, m.Build} {
		rw.defs = append(binary.AppendUvarint(rw.defs, uint64(len(s))), s...)
	}
	return rw.w.err
}

// Modules returns those that the call sites of this rank are in; none if the recorder did not say.
func (rr *RankReader) Modules() []Module { return slices.Clone(rr.tables.modules) }
