package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/vmwatch"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./internal/tools/doctor -update):\n%s", name, got)
	}
}

func text(t *testing.T, m Machine) string {
	t.Helper()
	var b bytes.Buffer
	if err := Examine(m).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func unlimited(source string) func() (verbs.Limits, error) {
	return func() (verbs.Limits, error) {
		return verbs.Limits{MaxPinnedBytes: mem.Unlimited, PinnedSource: source}, nil
	}
}

func works() error { return nil }

// node is a compute node where all is well.
func node() Machine {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{
		"proc/sys/kernel/osrelease":                 file("6.12.0\n"),
		"proc/sys/kernel/io_uring_disabled":         file("0\n"),
		"proc/sys/kernel/unprivileged_bpf_disabled": file("2\n"),
		"proc/sys/vm/unprivileged_userfaultfd":      file("0\n"),
		"proc/meminfo":                              file("MemTotal:       263169676 kB\nMemFree: 1 kB\n"),
		"proc/cpuinfo":                              file("processor\t: 0\nmodel name\t: Example 9000\n"),
		"proc/self/cgroup":                          file("0::/slurm/job_7\n"),
		"proc/self/mountinfo":                       file("30 24 0:26 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
		"sys/fs/cgroup/slurm/memory.max":            file("137438953472\n"),
		"sys/fs/cgroup/slurm/job_7/memory.max":      file("max\n"),
		"sys/fs/cgroup/slurm/job_7/cpu.max":         file("max 100000\n"),
		"sys/fs/cgroup/slurm/cpuset.cpus.effective": file("0-1,3\n"),
		"etc/os-release":                            file("NAME=x\nPRETTY_NAME=\"Example Linux 9\"\n"),
		"lib64/libibverbs.so.1": {Data: []byte("libibverbs.so.1.14"),
			Mode: fs.ModeSymlink},
		"lib64/libibverbs.so.1.14":                                 {},
		"usr/lib64/libpinwheel-go.so":                              {},
		"opt/mpi/libmpi.so.40":                                     {},
		"opt/fabric/libfabric.so.1":                                {},
		"sys/devices/system/cpu/online":                            file("0-3\n"),
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list":      file("0,2\n"),
		"sys/devices/system/cpu/cpu2/topology/core_cpus_list":      file("0,2\n"),
		"sys/devices/system/cpu/cpu1/topology/core_cpus_list":      file("1,3\n"),
		"sys/devices/system/cpu/cpu3/topology/core_cpus_list":      file("1,3\n"),
		"sys/devices/system/cpu/cpu0/cache/index3/level":           file("3\n"),
		"sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list": file("0-3\n"),
	}
	return Machine{
		Version:  "v1.2",
		Arch:     "amd64",
		PageSize: 4096,
		Root:     files,
		Environ:  []string{"LD_LIBRARY_PATH=/opt/fabric:/nowhere"},
		Settings: settings.Default(),
		Providers: []Provider{
			{"rdma", works, unlimited("CAP_IPC_LOCK")}, {"uring", works, unlimited("RLIMIT_MEMLOCK")},
			{"mlock", works, unlimited("RLIMIT_MEMLOCK")},
		},
		Devices: func() ([]rdma.DeviceInfo, error) {
			return []rdma.DeviceInfo{{Name: "mlx5_0", Port: 1, Active: true, Link: "InfiniBand", MTU: 4096},
				{Name: "mlx5_1", Port: 1, Link: "RoCE"}}, nil
		},
		Memlock: func() (unix.Rlimit, error) { return unix.Rlimit{Cur: 8 << 20, Max: unix.RLIM_INFINITY}, nil },
		Watch: func(mechanism, _ string) (vmwatch.Report, error) {
			return vmwatch.Report{Chosen: vmwatch.Uffd, Attempts: []vmwatch.Attempt{
				{Mechanism: vmwatch.Fentry, Err: errors.New("needs CAP_BPF")}, {Mechanism: vmwatch.Uffd},
			}, Gaps: []string{"files: not cached"}}, nil
		},
		Barrier:     works,
		Sealing:     func() (bool, error) { return true, nil },
		Library:     func() (string, error) { return "/usr/lib64/libpinwheel.so", nil },
		CurrentCPU:  func() int { return 0 },
		AllowedCPUs: func() ([]int, error) { return []int{0, 1, 3}, nil },
		Place: func(placement.IdlePolicy, bool) (helper.Placement, error) {
			return helper.Placement{CPU: 1, Helpers: 1}, nil
		},
		Claims: func() ([]placement.Claim, error) {
			return []placement.Claim{{Owner: placement.Owner{PID: 77}, CPU: 3, Bytes: 64 << 20},
				{Owner: placement.Owner{PID: 78}, CPU: helper.AnyCPU}}, nil
		},
		Output: func(command ...string) string {
			return map[string]string{
				"ompi_info --version": "Open MPI v4.1.4\n",
				"fi_info --version":   "fi_info: 1.18.0\nlibfabric: 1.18.1\n",
				"/sbin/ldconfig -p": "5 libs found in cache `/etc/ld.so.cache'\n" +
					"\tlibibverbs.so.1 (libc6) => /lib32/libibverbs.so.1\n" +
					"\tlibibverbs.so.1 (libc6,x86-64) => /lib64/libibverbs.so.1\n" +
					"\tlibibverbs.so.1 (libc6,x86-64) => /other/libibverbs.so.1\n" +
					"\tlibmpi.so.40 (libc6,x86-64) => /opt/mpi/libmpi.so.40\n" +
					"\tlibucp.so.0 (libc6) => /lib32/libucp.so.0\n",
			}[strings.Join(command, " ")]
		},
		Launcher: func(command string) string { return map[string]string{"mpirun": "Open MPI", "srun": "Slurm"}[command] },
	}
}

func TestReportOfANodeWhereAllIsWell(t *testing.T) {
	golden(t, "node.txt", text(t, node()))
}

// bare is a container where next to nothing works.
func bare() Machine {
	m := node()
	m.Root = fstest.MapFS{
		"proc/sys/kernel/io_uring_disabled": {Data: []byte("2\n")},
		"proc/self/cgroup":                  {Data: []byte("8:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n")},
		"proc/self/mountinfo": {Data: []byte("35 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"36 31 0:32 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n")},
		"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": {Data: []byte("536870912\n")},
		"sys/fs/cgroup/memory/memory.limit_in_bytes":          {Data: []byte("9223372036854771712\n")},
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us":                  {Data: []byte("150000\n")},
		"sys/fs/cgroup/cpu/cpu.cfs_period_us":                 {Data: []byte("100000\n")},
		"sys/fs/cgroup/cpu/cpu.stat":                          {Data: []byte("nr_periods 200\nnr_throttled 25\n")},
	}
	m.Environ = []string{"PINWHEEL_BUDGET=1G"}
	m.Settings, m.Warnings = settings.Load(append(m.Environ, "PINWHEEL_POLCIY=lru"))
	fails := func() error { return errors.New("not here") }
	for i := range m.Providers {
		m.Providers[i].Probe = fails
	}
	m.Memlock = func() (unix.Rlimit, error) { return unix.Rlimit{Cur: 0, Max: 0}, nil }
	m.Watch = func(string, string) (vmwatch.Report, error) {
		return vmwatch.Report{Chosen: vmwatch.None,
			Attempts: []vmwatch.Attempt{{Mechanism: vmwatch.Uffd, Err: errors.New("seccomp")}, {Mechanism: vmwatch.None}},
			Gaps:     []string{"nothing is cached"}}, nil
	}
	m.Barrier = fails
	m.Sealing = func() (bool, error) { return false, nil }
	m.Library = func() (string, error) { return "", errors.New("libpinwheel.so is not installed beside /x/pinwheel") }
	m.Output = func(...string) string { return "" }
	m.Launcher = func(string) string { return "" }
	return m
}

func TestReportOfAContainerWhereNothingWorks(t *testing.T) {
	golden(t, "bare.txt", text(t, bare()))
}

func TestEveryProblemSaysWhatToDo(t *testing.T) {
	r := Examine(bare())
	problems := 0
	for _, f := range r.Findings {
		if f.Status == Problem {
			problems++
			if f.Advice == "" {
				t.Errorf("%+v: no advice", f)
			}
		}
	}
	if r.Usable || problems != 4 { // library, providers, watch, choice
		t.Errorf("usable %v with %d problems", r.Usable, problems)
	}
}

func TestJSONHasEveryFinding(t *testing.T) {
	var b bytes.Buffer
	want := Examine(node())
	if err := want.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Usable || got.Version != "v1.2" || len(got.Findings) != len(want.Findings) ||
		got.Findings[3] != want.Findings[3] {
		t.Errorf("read back %+v", got)
	}
}

// What one setting or one fact changes, by the line that then is in the report.
func TestFindingsFollowTheFacts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Machine)
		usable bool
		line   string
	}{
		{"no device", func(m *Machine) { m.Providers[0].Probe = func() error { return errors.New("no device") } }, true,
			"- provider        uring: no RDMA device works, so MPI programs register nothing"},
		{"provider asked for fails", func(m *Machine) {
			m.Settings.Provider = "rdma"
			m.Providers[0].Probe = func() error { return errors.New("no device") }
		}, false, "! provider        no device"},
		{"small limit", func(m *Machine) {
			m.Providers[0].Limits = func() (verbs.Limits, error) {
				return verbs.Limits{MaxPinnedBytes: 64 << 10, PinnedSource: "RLIMIT_MEMLOCK"}, nil
			}
		}, true, "- process         64.0 KiB (RLIMIT_MEMLOCK), as rdma says; that is little"},
		{"half a library",
			func(m *Machine) { m.Library = func() (string, error) { return "/lib64/libpinwheel.so", nil } }, false,
			"! libpinwheel-go.so  not beside libpinwheel.so"},
		{"disabled", func(m *Machine) { m.Settings.Disable = true }, true, "- nothing         PINWHEEL_DISABLE is set"},
		{"no idle core", func(m *Machine) {
			m.Place = func(placement.IdlePolicy, bool) (helper.Placement, error) {
				return helper.Placement{CPU: helper.AnyCPU, Parked: true}, nil
			}
		}, true, "- helper          none: no idle core now"},
		{"a share of the rank's core", func(m *Machine) {
			m.Place = func(placement.IdlePolicy, bool) (helper.Placement, error) {
				return helper.Placement{CPU: 0, Helpers: 1, Shared: true}, nil
			}
		}, true, "helper          no idle core now: it sleeps, and memory is registered on demand, for at most 0.5 % of the rank's time"},
		{"helper off", func(m *Machine) { m.Settings.IdlePolicy = "off" }, true,
			"- helper          none, as PINWHEEL_IDLE_POLICY=off says"},
		{"helper's processor given", func(m *Machine) { m.Settings.HelperCPU = 2 }, true,
			"helper          on processor 2, as PINWHEEL_HELPER_CPU says"},
		{"watch asked for fails", func(m *Machine) {
			m.Settings.Watch = "bpf"
			m.Watch = func(s, _ string) (vmwatch.Report, error) { return vmwatch.Report{}, errors.New(s + " not permitted") }
		}, false, "! bpf             bpf not permitted"},
	} {
		m := node()
		c.change(&m)
		got := text(t, m)
		if Examine(m).Usable != c.usable || !strings.Contains(got, c.line) {
			t.Errorf("%s: want usable %v and %q in\n%s", c.name, c.usable, c.line, got)
		}
	}
}

// Each row is a heading of the page, and applies where what it is about is found.
func TestRowsOfThePageApply(t *testing.T) {
	page, err := os.ReadFile("../../../" + compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	m := node()
	files := m.Root.(fstest.MapFS)
	for _, library := range []string{"libucp.so.0", "libmpich.so.12", "libmpi_abi.so.0"} {
		files["opt/all/"+library] = &fstest.MapFile{}
	}
	for device, driver := range map[string]string{"mlx5_0": "mlx5_core", "rdmap0s6": "efa", "hfi1_0": "hfi1"} {
		files["sys/class/infiniband/"+device+"/device/driver"] =
			&fstest.MapFile{Data: []byte("../../../bus/pci/drivers/" + driver), Mode: fs.ModeSymlink}
	}
	files["sys/class/cxi/cxi0/device"] = &fstest.MapFile{}
	files["dev/kfd"] = &fstest.MapFile{}
	m.Environ = []string{"LD_LIBRARY_PATH=/opt/all:/opt/fabric",
		"LD_PRELOAD=/usr/lib/libjemalloc.so.2 /usr/lib/libasan.so.8"}
	before := node()
	for _, r := range rows {
		if !strings.Contains(string(page), "\n### "+r.heading+"\n") {
			t.Errorf("%s has no heading %q", compatibilityPage, r.heading)
		}
		if r.applies(&m) == "" {
			t.Errorf("%q does not apply", r.heading)
		}
		if why := r.applies(&before); why != "" && r.heading != "Open MPI over libfabric" {
			t.Errorf("%q applies to a machine without it: %s", r.heading, why)
		}
	}
	want := "Open MPI over libfabric: here Open MPI 4.1.4 and libfabric 1.18.1; tried with Open MPI 4.1.4 and libfabric 1.17.0"
	if got := text(t, before); !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
}

// The first line of "ucx_info -v" has changed.
func TestVersionsOfUCX(t *testing.T) {
	ucx := transports[slices.IndexFunc(transports, func(t transport) bool { return t.name == "UCX" })]
	for out, want := range map[string]string{
		"# Version 1.13.1\n# Git branch '<unknown>', revision 0000000\n":        "1.13.1",
		"# Library version: 1.17.0\n# Library path: /opt/ucx/lib/libucs.so.0\n": "1.17.0",
		"# UCT version=1.10.1 revision 6a5856e\n":                               "1.10.1",
	} {
		m := node()
		m.Output = func(...string) string { return out }
		if got := m.versionOf(ucx); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}

func TestThisMachineAnswers(t *testing.T) {
	r := Examine(This(""))
	seen := map[string]bool{}
	for _, f := range r.Findings {
		seen[f.Name] = true
		if f.Value == "" || strings.Contains(f.Value, "%!") {
			t.Errorf("%+v", f)
		}
	}
	for _, name := range []string{"kernel", "libpinwheel.so", "mlock", "RLIMIT_MEMLOCK", "membarrier", "online",
		"helper", "libibverbs", "policy"} {
		if !seen[name] {
			t.Errorf("nothing about %s", name)
		}
	}
}

func TestTransportsThatUseNoVerbsAreNamed(t *testing.T) {
	m := node()
	files := m.Root.(fstest.MapFS)
	for name, device := range map[string]string{"PSM3": "dev/rv", "OPX": "dev/hfi1_0", "CXI": "dev/cxi0"} {
		line := name + " "
		if got := text(t, m); strings.Contains(got, line) {
			t.Errorf("%s without its device:\n%s", name, got)
		}
		files[device] = &fstest.MapFile{}
		got := text(t, m)
		if !strings.Contains(got, line) || !strings.Contains(got, "/"+device+": it registers memory without verbs") ||
			!strings.Contains(got, "cache stays on") {
			t.Errorf("%s is not named:\n%s", device, got)
		}
		delete(files, device)
	}
}
