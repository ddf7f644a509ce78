package profile

import (
	"cmp"
	"hash/fnv"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// Modules are the program and the libraries of this process. They make addresses of code comparable between
// processes. For one goroutine.
type Modules struct {
	code []code // ascending
	last int    // index in code of the address before: neighbouring frames are often of one module
	read func() ([]machine.Mapping, error)
	exe  string
	met  []Module // that frames were in; they may be unloaded by now

	loads   func() uint64 // nil: not known
	counted uint64        // loads before the mappings were read
	rereads int
}

// code is a mapping that holds code of a module.
type code struct {
	text   mem.Range
	base   mem.Addr // where the file's first byte is mapped
	module string   // path of the file
	met    bool     // a frame was in it, since the mappings were read
	tag    uint64   // of the module, above offsetBits, once it was met; 0: the program
}

// offsetBits are those of an offset in a module. User addresses have 47 (x86-64) or 48 bits.
const offsetBits = 48

// maxRereads bounds how often new libraries are looked for, for code that is in none at all.
const maxRereads = 16

// ReadModules looks at what is loaded. loads counts how often libraries were loaded and unloaded, of which Update must
// know; nil if no library is ever unloaded.
func ReadModules(loads func() uint64) (*Modules, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	m := &Modules{read: machine.Mappings, exe: exe, loads: loads}
	if loads != nil {
		m.counted = loads()
	}
	return m, m.reread()
}

// Update looks again at what is loaded, if that has changed. It is to be called before the frames of a call that came
// later. Code of a library that was unloaded since stays known until other code is mapped there: calls from it may
// still be on their way.
func (m *Modules) Update() {
	if m.loads == nil {
		return
	}
	if n := m.loads(); n != m.counted && m.reread() == nil {
		m.counted = n
	}
}

// reread finds what is loaded now.
func (m *Modules) reread() error {
	all, err := m.read()
	if err != nil {
		return err
	}
	var now []code
	base := map[string]mem.Addr{} // by path, of the latest mapping of its first byte
	for _, x := range all {
		if !strings.HasPrefix(x.Path, "/") {
			continue
		}
		if x.Offset == 0 {
			base[x.Path] = x.Range.Start
		}
		if start, known := base[x.Path]; known && x.Executable {
			now = append(now, code{text: x.Range, base: start, module: x.Path})
		}
	}
	for _, c := range m.code {
		if c.met && !slices.ContainsFunc(all, func(x machine.Mapping) bool { return x.Range.Overlaps(c.text) }) {
			now = append(now, c)
		}
	}
	slices.SortFunc(now, func(a, b code) int { return cmp.Compare(a.text.Start, b.text.Start) })
	m.code, m.last = now, 0
	return nil
}

// meet gives a module that a frame is in its tag: the same in all processes that load the same build of it, from
// whichever directory. Of two modules whose tags would be the same, the one that is met later gets another.
func (m *Modules) meet(c *code) {
	c.met = true
	d := c.describe()
	i := slices.IndexFunc(m.met, func(k Module) bool { return k.Name == d.Name && k.Build == d.Build })
	if i < 0 {
		if i = len(m.met); c.module != m.exe {
			d.Tag = m.freeTag(d)
		}
		m.met = append(m.met, d)
	}
	c.tag = uint64(m.met[i].Tag) << offsetBits
}

// freeTag returns a tag that no module has which was met.
func (m *Modules) freeTag(d Module) uint16 {
	h := fnv.New32a()
	h.Write([]byte(d.Name + "\x00" + d.Build))
	tag := h.Sum32() % math.MaxUint16
	for len(m.met) < math.MaxUint16-1 && slices.ContainsFunc(m.met, func(k Module) bool { return k.Tag == uint16(tag+1) }) {
		tag = (tag + 1) % math.MaxUint16
	}
	return uint16(tag + 1)
}

// moduleName is the name of a module's file.
func moduleName(file string) string { return path.Base(strings.TrimSuffix(file, " (deleted)")) }

// Frame makes a return address the same in all runs of a program: its module, and its offset there. Numbers that are no
// addresses of code stay. It takes some 10 ns, and much longer for the first address in a library, whose build ID it reads
// then: later the library may be unloaded.
func (m *Modules) Frame(address uint64) uint64 {
	c := m.find(mem.Addr(address))
	if c == nil {
		return address
	}
	if !c.met {
		m.meet(c)
	}
	return c.tag | (address-uint64(c.base))&(1<<offsetBits-1)
}

// find returns the code that an address is in, or nil.
func (m *Modules) find(a mem.Addr) *code {
	if m.last < len(m.code) && m.code[m.last].has(a) {
		return &m.code[m.last]
	}
	for {
		i, _ := slices.BinarySearchFunc(m.code, a, func(c code, a mem.Addr) int {
			if c.text.End <= a {
				return -1
			}
			return 1
		})
		if i < len(m.code) && m.code[i].has(a) {
			m.last = i
			return &m.code[i]
		}
		if a == 0 || uint64(a)>>offsetBits != 0 || m.rereads == maxRereads {
			return nil
		}
		m.rereads++
		if m.reread() != nil {
			m.rereads = maxRereads
		}
	}
}

func (c *code) has(a mem.Addr) bool { return a >= c.text.Start && a < c.text.End }

// Program describes the program itself. Its Build is "" if there is no way to tell builds apart.
func (m *Modules) Program() Module {
	for i := range m.code {
		if m.code[i].module == m.exe {
			return m.code[i].describe()
		}
	}
	return Module{Name: moduleName(m.exe)}
}

// Met describes the modules that Frame has found addresses in, ascending by name.
func (m *Modules) Met() []Module { return union(m.met) }

// union is all modules of some lists, ascending by name.
func union(lists ...[]Module) []Module {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b Module) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Build, b.Build))
	})
	return slices.CompactFunc(all, func(a, b Module) bool { return a.Name == b.Name && a.Build == b.Build })
}

// changed returns the name of the first module that is loaded, but of no build in the list; "" if there is none. A
// library that isn't loaded yet may be later. Ranks may have loaded libraries of one name from several directories.
func (m *Modules) changed(list []Module) string {
	for _, want := range list {
		differs := false
		for i := range m.code {
			if moduleName(m.code[i].module) != want.Name {
				continue
			}
			have := m.code[i].describe().Build
			differs = !slices.ContainsFunc(list, func(l Module) bool { return l.Name == want.Name && l.Build == have })
			if !differs {
				break
			}
		}
		if differs {
			return want.Name
		}
	}
	return ""
}
