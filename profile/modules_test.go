package profile

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"pinwheel/internal/machine"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

func hereAddress() uint64 {
	return uint64(reflect.ValueOf(TestFramesAreRelativeToTheirModule).Pointer()) + 1
}

func TestFramesAreRelativeToTheirModule(t *testing.T) {
	m := &Modules{exe: "/opt/app", read: func() ([]machine.Mapping, error) {
		at := func(start, end mem.Addr, executable bool, offset uint64, path string) machine.Mapping {
			return machine.Mapping{Range: mem.Range{Start: start, End: end}, Executable: executable, Offset: offset, Path: path}
		}
		return []machine.Mapping{
			at(0x400000, 0x401000, false, 0, "/opt/app"), at(0x401000, 0x480000, true, 0x1000, "/opt/app"),
			at(0x700000000000, 0x700000001000, false, 0, "/usr/lib/libsolver.so"),
			at(0x700000001000, 0x700000009000, true, 0x1000, "/usr/lib/libsolver.so"),
			at(0x700000009000, 0x70000000a000, true, 0, ""), at(0x7ffff000, 0x80000000, true, 0, "[vdso]"),
		}, nil
	}}
	if err := m.reread(); err != nil {
		t.Fatal(err)
	}
	solver := m.Frame(0x700000001010) &^ 0xffff
	if solver>>offsetBits == 0 {
		t.Fatal("a library has the tag of the program")
	}
	for address, want := range map[uint64]uint64{
		0x401234: 0x1234, 0x47ffff: 0x7ffff, 0x480000: 0x480000, 0x700000001010: solver | 0x1010,
		0x700000009010: 0x700000009010, 0x7ffff010: 0x7ffff010, 0: 0, 1<<63 | 5: 1<<63 | 5, 0x400100: 0x400100,
	} {
		for range 2 {
			if got := m.Frame(address); got != want {
				t.Errorf("%#x is %#x, want %#x", address, got, want)
			}
		}
	}
	if met := m.Met(); len(met) != 2 || met[0].Name != "app" || met[1].Name != "libsolver.so" {
		t.Errorf("met %+v", met)
	}
}

func TestLibraryThatIsLoadedLaterIsFoundAndOthersAreKept(t *testing.T) {
	all := []machine.Mapping{{Range: mem.Range{Start: 0x1000, End: 0x2000}, Executable: true, Path: "/app"}}
	reads := 0
	m := &Modules{exe: "/app", read: func() ([]machine.Mapping, error) { reads++; return all, nil }}
	if err := m.reread(); err != nil {
		t.Fatal(err)
	}
	m.Frame(0x1800)
	all = append(all, machine.Mapping{Range: mem.Range{Start: 0x5000, End: 0x6000}, Executable: true, Path: "/lib/late.so"})
	if got := m.Frame(0x5010); got>>offsetBits == 0 || got&0xffff != 0x10 {
		t.Errorf("got %#x", got)
	}
	if met := m.Met(); len(met) != 2 {
		t.Errorf("met %+v", met)
	}
	all = append(all[:1:1], machine.Mapping{Range: mem.Range{Start: 0x7000, End: 0x8000}, Executable: true, Path: "/lib/later.so"})
	m.Frame(0x7010)
	if met := m.Met(); len(met) != 3 || met[1].Name != "late.so" {
		t.Errorf("one was unloaded; met %+v", met)
	}
	for i := range uint64(1000) {
		m.Frame(0x9000 + i)
	}
	if reads > maxRereads+1 {
		t.Errorf("looked %d times", reads)
	}
}

// Tags have 16 bits, and so many libraries have the same hash here and there.
func TestLibrariesNeverShareATag(t *testing.T) {
	const libraries = 3000
	var all []machine.Mapping
	for i := range mem.Addr(libraries) {
		at := 0x10000 * (i + 1)
		all = append(all, machine.Mapping{Range: mem.Range{Start: at, End: at + 0x1000}, Executable: true, Path: fmt.Sprintf("/lib/%d.so", i)})
	}
	m := &Modules{exe: "/app", read: func() ([]machine.Mapping, error) { return all, nil }}
	if err := m.reread(); err != nil {
		t.Fatal(err)
	}
	seen, wanted := map[uint64]bool{}, map[uint16]bool{}
	for i := range uint64(libraries) {
		f := m.Frame(0x10000*(i+1) + 0x10)
		if f>>offsetBits == 0 || seen[f] {
			t.Fatalf("library %d: %#x is that of another", i, f)
		}
		if again := m.Frame(0x10000*(i+1) + 0x10); again != f {
			t.Fatalf("library %d: %#x, and then %#x", i, f, again)
		}
		seen[f] = true
		wanted[(&Modules{}).freeTag(Module{Name: fmt.Sprintf("%d.so", i)})] = true
	}
	if len(wanted) == libraries {
		t.Error("no two of them would share a tag")
	}
	met := m.Met()
	if len(met) != libraries || met[0].Tag == 0 || met[0].Tag == met[1].Tag {
		t.Errorf("met %d, the first %+v", len(met), met[:2])
	}
}

// dlclose and dlopen map another library where one was.
func TestCallsFromWhereALibraryWasBelongToTheOneThatIsThere(t *testing.T) {
	library := func(path string) machine.Mapping {
		return machine.Mapping{Range: mem.Range{Start: 0x5000, End: 0x6000}, Executable: true, Path: path}
	}
	program := machine.Mapping{Range: mem.Range{Start: 0x1000, End: 0x2000}, Executable: true, Path: "/app"}
	loaded, loads := []machine.Mapping{program, library("/lib/first.so")}, uint64(7)
	m := &Modules{
		exe: "/app", read: func() ([]machine.Mapping, error) { return loaded, nil }, loads: func() uint64 { return loads }, counted: loads,
	}
	if err := m.reread(); err != nil {
		t.Fatal(err)
	}
	call := func() uint64 {
		m.Update()
		return m.Frame(0x5010)
	}
	first := call()
	loaded, loads = loaded[:1:1], loads+1
	if got := call(); got != first {
		t.Errorf("a call that is on its way from a library that is gone: %#x, not %#x", got, first)
	}
	for range 2 * maxRereads {
		loaded, loads = []machine.Mapping{program, library("/lib/second.so")}, loads+1
		second := call()
		if second == first || second&0xffff != 0x10 {
			t.Fatalf("%#x, as in the first library: %#x", second, first)
		}
		loaded, loads = []machine.Mapping{program, library("/home/me/first.so")}, loads+2
		if again := call(); again != first {
			t.Fatalf("the first library again: %#x, not %#x", again, first)
		}
	}
	if met := m.Met(); len(met) != 2 || met[0].Name != "first.so" || met[1].Name != "second.so" {
		t.Errorf("met %+v", met)
	}
	anonymous := library("")
	loaded, loads = []machine.Mapping{program, anonymous}, loads+1
	if got := call(); got != 0x5010 {
		t.Errorf("code of no library: %#x", got)
	}
}

func TestModulesOfThisProcessAreToldApart(t *testing.T) {
	testwait.NeedOwnMemory(t)
	m, err := ReadModules(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Update() // nothing is known to have changed
	if f := m.Frame(hereAddress()); f == 0 || f>>offsetBits != 0 {
		t.Errorf("this function is at %#x in the program", f)
	}
	met := m.Met()
	if len(met) != 1 || met[0] != m.Program() || met[0].Build == "" {
		t.Fatalf("met %+v, program %+v", met, m.Program())
	}
	if name := m.changed(met); name != "" {
		t.Errorf("%s has changed", name)
	}
	if name := m.changed(append([]Module{{Name: met[0].Name, Build: met[0].Build + "0"}}, met...)); name != "" {
		t.Errorf("%s has changed, though another rank has loaded another build", name)
	}
	if name := m.changed([]Module{{Name: "not-loaded.so", Build: "12"}, {Name: met[0].Name, Build: met[0].Build + "0"}}); name != met[0].Name {
		t.Errorf("%q has changed", name)
	}
}

// A build without build IDs has other code.
func TestBuildIsThatOfTheFile(t *testing.T) {
	testwait.NeedOwnMemory(t)
	if id := os.Getenv("PROFILE_TEST_BUILD"); id != "" {
		m, err := ReadModules(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("build=" + m.Program().Build + "=")
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	build := func(program string) string {
		cmd := testwait.Command(t, program, "-test.run", "^TestBuildIsThatOfTheFile$", "-test.v")
		cmd.Env = append(os.Environ(), "PROFILE_TEST_BUILD=y")
		out, err := cmd.CombinedOutput()
		_, rest, found := strings.Cut(string(out), "build=")
		id, _, _ := strings.Cut(rest, "=")
		if err != nil || !found || id == "" {
			t.Fatalf("%v: %s", err, out)
		}
		return id
	}
	id := build(self)
	if id != build(self) {
		t.Error("it differs between two runs")
	}
	if objcopy, err := exec.LookPath("objcopy"); err == nil && testwait.Command(t, objcopy, "--version").Run() == nil {
		stripped := t.TempDir() + "/none"
		if out, err := testwait.Command(t, objcopy, "--remove-section", ".note.gnu.build-id", "--remove-section", ".note.go.buildid", self, stripped).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := build(stripped); got == id {
			t.Logf("objcopy has left the build ID %s", got)
		}
	}
}

func TestNotesAreReadAsTheyAre(t *testing.T) {
	b, err := hex.DecodeString("04000000" + "03000000" + "03000000" + "474e5500" + "aabbcc00" + "ffffffff" + "ffffffff" + "01000000")
	if err != nil {
		t.Fatal(err)
	}
	n, rest := cutNote(b, 4)
	if n.name != "GNU" || n.kind != noteGNUBuildID || hex.EncodeToString(n.text) != "aabbcc" || len(rest) != 12 {
		t.Errorf("got %+v, %x", n, rest)
	}
	if n, rest := cutNote(rest, 4); n.text != nil || rest != nil {
		t.Errorf("a note that is cut off: %+v", n)
	}
}

func BenchmarkReadModules(b *testing.B) {
	for b.Loop() {
		m, err := ReadModules(nil)
		if err != nil || m.Program().Build == "" {
			b.Fatal(err)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	m, err := ReadModules(nil)
	if err != nil {
		b.Fatal(err)
	}
	address := hereAddress()
	for b.Loop() {
		m.Frame(address)
	}
}
