package machine

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"

	"pinwheel/mem"
)

func TestMachineIsDescribedByProc(t *testing.T) {
	m := Of(fstest.MapFS{
		"proc/cpuinfo":              {Data: []byte("processor\t: 0\nmodel name\t: Example 9000\nmodel name\t: another\n")},
		"proc/meminfo":              {Data: []byte("MemTotal:       263169676 kB\nMemFree: 1 kB\n")},
		"proc/sys/kernel/osrelease": {Data: []byte("6.12.0\n")},
	})
	if want := (Machine{"Example 9000", runtime.NumCPU(), 263169676 << 10, "6.12.0"}); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	if want := (Machine{Processors: runtime.NumCPU()}); Of(fstest.MapFS{}) != want {
		t.Errorf("without /proc: %+v, want %+v", Of(fstest.MapFS{}), want)
	}
	if m := This(); m.Processor == "" || m.Kernel == "" {
		t.Errorf("this machine: %+v", m)
	}
}

func TestFieldThatIsNoNumberIsAnError(t *testing.T) {
	root := fstest.MapFS{"status": {Data: []byte("Name: x\nVmPin: many kB\nVmLck: 9007199254740993 kB\n")}}
	for _, name := range []string{"VmPin", "VmLck", "VmHWM"} {
		if n, err := Bytes(root, "status", name); err == nil {
			t.Errorf("%s: %d", name, n)
		}
	}
}

func TestMappingsAreThoseOfTheKernel(t *testing.T) {
	m, err := parseMapping("7f0000001000-7f0000003000 rw-s 00001000 00:01 1234                       /memfd:x (deleted)")
	if err != nil || m != (Mapping{
		Range: mem.Range{Start: 0x7f0000001000, End: 0x7f0000003000}, Readable: true, Writable: true, Shared: true,
		Offset: 0x1000, Inode: 1234, Path: "/memfd:x (deleted)"}) {
		t.Errorf("got %+v, %v", m, err)
	}
	if m, err := parseMapping("7ffc000-7ffd000 r-xp 00000000 00:00 0 \n"); err != nil || !m.Executable || !m.Readable || m.Writable ||
		m.Path != "" || m.Inode != 0 {
		t.Errorf("got %+v, %v", m, err)
	}
	for _, line := range []string{"", "1000 r-xp 0 00:00 0", "1000-2000 r-xp 0 00:00", "x-y r-xp 0 00:00 0"} {
		if m, err := parseMapping(line); err == nil {
			t.Errorf("%q is %+v", line, m)
		}
	}
	all, err := Mappings()
	here := mem.Addr(reflect.ValueOf(TestMappingsAreThoseOfTheKernel).Pointer())
	if err != nil || !slices.ContainsFunc(all, func(m Mapping) bool {
		return m.Range.Contains(mem.Range{Start: here, End: here + 1}) && !m.Shared &&
			m.Executable && m.Inode != 0 && m.Path != ""
	}) {
		t.Errorf("no file is mapped at %#x, where this function is: %v, %v", here, all, err)
	}
}
