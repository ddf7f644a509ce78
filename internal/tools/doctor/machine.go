package doctor

import (
	"io/fs"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/settings"
	"pinwheel/internal/tools/launch"
	"pinwheel/internal/version"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/mlock"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/arena"
	"pinwheel/verbs/uring"
	"pinwheel/vmwatch"
)

// Machine is who is asked. All fields are set.
type Machine struct {
	Version  string
	Arch     string
	PageSize uint64   // bytes
	Root     fs.FS    // the root directory
	Environ  []string // NAME=value
	Settings settings.Settings
	Warnings []string // about settings

	Providers []Provider // in the order of the automatic choice
	Devices   func() ([]rdma.DeviceInfo, error)
	Memlock   func() (unix.Rlimit, error)
	Watch     func(mechanism, service string) (vmwatch.Report, error)
	Barrier   func() error // membarrier(2)
	Sealing   func() (bool, error)
	Library   func() (string, error) // libpinwheel.so

	CurrentCPU  func() int
	AllowedCPUs func() ([]int, error)
	Place       func(p placement.IdlePolicy, share bool) (helper.Placement, error)
	Claims      func() ([]placement.Claim, error)

	// Output returns what a command prints, "" if it is not there.
	Output func(command ...string) string
	// Launcher returns the kind of launcher that a command is, "" for none.
	Launcher func(command string) string
}

// Provider is one way of registering memory.
type Provider struct {
	Name   string
	Probe  func() error
	Limits func() (verbs.Limits, error)
}

// This returns the machine that the program runs on. library is the path of
// libpinwheel.so, "" for the installed one.
func This(library string) Machine {
	environ := os.Environ()
	s, warnings := settings.Load(environ)
	return Machine{
		Version:  version.String(),
		Arch:     runtime.GOARCH,
		PageSize: mem.PageSize,
		Root:     os.DirFS("/"),
		Environ:  environ,
		Settings: s,
		Warnings: warnings,
		Providers: []Provider{
			{"rdma", rdma.Probe, func() (verbs.Limits, error) {
				return limitsOf(rdma.Open(rdma.Options{Device: s.RDMADevice}))
			}},
			{"uring", uring.Probe, func() (verbs.Limits, error) { return limitsOf(uring.Open(uring.Options{})) }},
			{"mlock", mlock.Probe, func() (verbs.Limits, error) { return limitsOf(mlock.Open()) }},
		},
		Devices: rdma.Devices,
		Memlock: func() (r unix.Rlimit, err error) { return r, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) },
		Watch:   watch,
		Barrier: regcache.ProbeMembarrier,
		Sealing: sealing,
		Library: func() (string, error) { return launch.FindLibrary(library) },

		CurrentCPU:  helper.CurrentCPU,
		AllowedCPUs: placement.AllowedCPUs,
		Place:       place,
		Claims:      placement.Claims,
		Output:      func(command ...string) string { return launch.Output(environ, command...) },
		Launcher:    func(command string) string { return launch.LauncherNamed(command, environ) },
	}
}

func limitsOf[P verbs.Provider](p P, err error) (verbs.Limits, error) {
	if err != nil {
		return verbs.Limits{}, err
	}
	defer p.Close() // nothing is registered
	return p.Limits(), nil
}

func watch(mechanism, service string) (vmwatch.Report, error) {
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: mechanism, Service: service})
	if err != nil {
		return vmwatch.Report{}, err
	}
	defer w.Close()
	return w.Report(), nil
}

func sealing() (bool, error) {
	a, err := arena.New(uint64(os.Getpagesize()))
	if err != nil {
		return false, err
	}
	return a.Sealed(), nil // sealed memory stays until the process ends, by design
}

// place lets a Placer look at the load of the machine for a moment, as a
// helper of a process that has registered nothing.
func place(p placement.IdlePolicy, share bool) (helper.Placement, error) {
	placed := make(chan helper.Placement, 1)
	failed := make(chan error, 1)
	const look = 300 * time.Millisecond
	placer, err := placement.StartPlacer(placement.PlacerOptions{
		Policy:  p,
		Share:   share,
		Bytes:   func() int64 { return 0 },
		CommCPU: helper.CurrentCPU,
		Apply: func(p helper.Placement) {
			if p.CPU == helper.AnyCPU && !p.Parked {
				return // before the first look
			}
			select {
			case placed <- p:
			default:
			}
		},
		Warn: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
		Interval: look,
	})
	if err != nil {
		return helper.Placement{}, err
	}
	defer placer.Close()
	select {
	case p := <-placed:
		return p, nil
	case err := <-failed:
		return helper.Placement{}, err
	case <-time.After(10 * look): // not placed differently from a helper of which nothing is known
		return helper.Placement{CPU: helper.AnyCPU, Helpers: 1}, nil
	}
}
