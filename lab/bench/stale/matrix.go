package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/version"
	"pinwheel/lab/testbed/live/stack"
)

type matrixCmd struct {
	Mechanisms   command.Names `default:"unwatched,ucx,fentry,tps,tp,uffd,pfn,none" help:"Columns."`
	Unprivileged bool          `help:"Run the cells as nobody."`
	Device       string        `default:"io_uring" enum:"io_uring,rdma,softverbs" help:"What moves the bytes."`
	Softverbs    string        `default:"out/softverbs" help:"Directory of the software device, for softverbs and for MPI."`
	MPI          bool          `help:"Initialise Open MPI over UCX in each cell, with its patches of libc."`
	Out          string        `short:"o" default:"-" help:"File for the JSON lines; - is standard output."`

	variables []string // for the cells
}

// Cell is one result, and the form of the result files.
type Cell struct {
	Version   string `json:"version,omitempty"` // of Pinwheel
	Machine   string `json:"machine"`
	Kernel    string `json:"kernel"`
	Date      string `json:"date"`
	Device    string `json:"device"` // what moved the bytes
	User      string `json:"user"`
	Mechanism string `json:"mechanism"`
	Change    string `json:"change"`
	Verdict   string `json:"verdict"`
	Why       string `json:"why,omitempty"` // where the verdict is n/a
}

const notApplicable = "n/a"

// cellTime bounds one cell: a hang is a failure, not a wait. Those of others that hang do so in column after column.
const (
	cellTime       = 20 * time.Second
	cellTimeTheirs = 5 * time.Second
)

// nobody is the unprivileged user of Debian, the BSDs and Red Hat.
const nobody = 65534

var errStale = errors.New("stale data was transferred, or a cell hung, under a mechanism that should have prevented it")

func (c matrixCmd) Run() error {
	bad := 0
	err := c.prepare()
	if err != nil {
		return err
	}
	if slices.Contains(c.Mechanisms, service) {
		variable, end, err := serve()
		if err != nil {
			return err
		}
		defer end()
		c.variables = append(c.variables, variable)
	}
	err = outfile.Write(c.Out, func(w io.Writer) (err error) {
		bad, err = c.write(json.NewEncoder(w))
		return err
	})
	if err == nil && bad > 0 {
		return fmt.Errorf("%w: %d cells", errStale, bad)
	}
	return err
}

// prepare finds out how cells get the software device.
func (c *matrixCmd) prepare() (err error) {
	if c.Device != softverbs && !c.MPI {
		return nil
	}
	c.variables, err = softwareDevice(c.Softverbs)
	c.variables = append(c.variables, patcherSetting)
	return err
}

// softwareDevice returns the variables by which a process finds the software device.
func softwareDevice(dir string) ([]string, error) {
	d, err := stack.OpenDevice(dir)
	if err != nil {
		return nil, err
	}
	openMPI, err := stack.Named("openmpi-ucx")
	if err != nil {
		return nil, err
	}
	return openMPI.Alone(d), nil
}

// write judges every cell. It returns how many are stale that must not be.
func (c matrixCmd) write(w *json.Encoder) (bad int, err error) {
	base := here()
	base.Device = c.Device
	if c.Unprivileged {
		base.User = "nobody"
	}
	for _, m := range c.Mechanisms {
		for _, k := range kinds() {
			cell := base
			cell.Change = k.Name
			cell.Verdict, cell.Mechanism, cell.Why = c.run(m, k)
			if (cell.Verdict == stale || cell.Verdict == hangs) && m != unwatched && !isTheirs(m) {
				bad++
			}
			if err := w.Encode(cell); err != nil {
				return bad, err
			}
		}
	}
	return bad, nil
}

// tries is how often a cell is judged if another thread of it has taken the address that the change had freed, before the
// change could map it anew.
const tries = 5

func (c matrixCmd) run(mechanism string, k change.Kind) (verdict, chosen, why string) {
	for range tries {
		verdict, chosen, why = c.runOnce(mechanism, k)
		if verdict != notApplicable || !strings.HasSuffix(why, unix.EEXIST.Error()) {
			break
		}
	}
	return verdict, chosen, why
}

// runOnce judges one cell in a child process.
func (c matrixCmd) runOnce(mechanism string, k change.Kind) (verdict, chosen, why string) {
	limit := cellTime
	if isTheirs(mechanism) {
		limit = cellTimeTheirs
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "cell", c.Device, mechanism, k.Name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.Unprivileged {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.WaitDelay = time.Second // for what a killed cell has forked
	if c.MPI {
		cmd.Args = append(cmd.Args, "--mpi")
	}
	cmd.Env = append(os.Environ(), c.variables...)
	var failure strings.Builder
	cmd.Stderr = &failure
	b, err := cmd.Output()
	if ctx.Err() != nil {
		return hangs, nameOf(mechanism), ""
	}
	if err != nil {
		why := strings.TrimSpace(strings.TrimPrefix(failure.String(), "stale: error: "))
		return notApplicable, nameOf(mechanism), cmp.Or(why, err.Error())
	}
	var cell Cell
	if err := json.Unmarshal(b, &cell); err != nil {
		return notApplicable, nameOf(mechanism), err.Error()
	}
	if c.MPI {
		cell.Mechanism += " under Open MPI's patcher"
	}
	return cell.Verdict, cell.Mechanism, ""
}

// here describes the machine.
func here() Cell {
	this := machine.This()
	c := Cell{Version: version.String(), Date: time.Now().UTC().Format(time.DateOnly), User: "root"}
	switch uid := os.Getuid(); uid {
	case 0:
	case nobody:
		c.User = "nobody"
	default:
		c.User = fmt.Sprintf("uid %d", uid)
	}
	c.Kernel, c.Machine = this.Kernel, fmt.Sprintf("%d x %s", this.Processors, this.Processor)
	return c
}
