package slurm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Cluster is one that runs. It belongs to one goroutine.
type Cluster struct {
	// Confinement says how jobs are kept to their processors, for people.
	Confinement string
	Groups      bool // by control groups, from which no process can free itself
	// MPI are the kinds of srun --mpi=list.
	MPI []string

	dir     string
	daemons []*daemon
}

// ready bounds how long a daemon may take until it answers, and until it has ended.
const ready = 30 * time.Second

// Start starts a cluster. The caller must Stop it.
func Start() (*Cluster, error) {
	c := &Cluster{dir: filepath.Join(Scratch, "slurm")}
	node, err := exec.Command("slurmd", "-C").Output()
	if err != nil {
		return nil, fmt.Errorf("slurmd -C: %w", err)
	}
	line, _, _ := strings.Cut(string(node), "\n")
	if err := c.startMunge(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	var tried error
	for _, how := range confinements() {
		if err = c.startSlurm(line, how); err == nil {
			return c, c.askForMPI()
		}
		tried = errors.Join(tried, fmt.Errorf("%s: %w", how.says, err), c.stop(1))
	}
	return nil, errors.Join(tried, c.Stop())
}

// startMunge starts the daemon that Slurm's daemons and commands know each other by.
func (c *Cluster) startMunge() error {
	run := "/run/munge" // where libmunge looks
	key := filepath.Join(run, "key")
	secret := make([]byte, 128)
	_, _ = rand.Read(secret) // never fails
	for _, err := range []error{
		os.MkdirAll(c.dir, 0o755), os.Mkdir(run, 0o755), os.WriteFile(key, secret, 0o400),
	} {
		if err != nil {
			return err
		}
	}
	return c.start(func() bool { return exec.Command("munge", "-n").Run() == nil },
		"munged", "--foreground", "--key-file="+key, "--pid-file="+run+"/pid",
		"--seed-file="+run+"/seed", "--log-file="+run+"/log")
}

// startSlurm starts the controller and the node. An error has what they said.
func (c *Cluster) startSlurm(node string, how confinement) error {
	c.Confinement, c.Groups = how.says, how.groups != ""
	for _, err := range []error{
		os.RemoveAll(c.path("state")), os.Mkdir(c.path("state"), 0o755),
		os.RemoveAll(c.path("spool")), os.Mkdir(c.path("spool"), 0o755),
		os.WriteFile(c.path("slurm.conf"), []byte(configuration(node, c.dir, how)), 0o644),
		os.WriteFile(c.path("cgroup.conf"), []byte(how.groups), 0o644),
		c.SetTaskProlog(""),
	} {
		if err != nil {
			return err
		}
	}
	answers := func() bool { return c.Command("scontrol", "ping").Run() == nil }
	idle := func() bool {
		out, err := c.Command("sinfo", "--noheader", "--format=%t").Output()
		states := strings.Fields(string(out)) // in each partition
		return err == nil && len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool { return s != "idle" })
	}
	if err := c.start(answers, "slurmctld", "-D", "-f", c.path("slurm.conf")); err != nil {
		return err
	}
	return c.start(idle, "slurmd", "-D", "-f", c.path("slurm.conf"))
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// SetTaskProlog makes a script the TaskProlog of the tasks that start from now on; "" is none.
func (c *Cluster) SetTaskProlog(script string) error {
	if script == "" {
		script = "#!/bin/sh\n"
	}
	return os.WriteFile(c.path(prologName), []byte(script), 0o755)
}

// Command is exec.Command for a command that talks to the cluster, or starts one that does.
func (c *Cluster) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), c.Environ())
	return cmd
}

// Environ is the variable by which Slurm's commands find the cluster.
func (c *Cluster) Environ() string { return "SLURM_CONF=" + c.path("slurm.conf") }

// askForMPI fills MPI, from lines such as "\tpmi2" and "specific pmix plugin versions available: pmix_v4".
func (c *Cluster) askForMPI() error {
	out, err := c.Command("srun", "--mpi=list").CombinedOutput()
	if err != nil {
		return fmt.Errorf("srun --mpi=list: %w\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if _, versions, found := strings.Cut(line, "available:"); found {
			line = strings.ReplaceAll(versions, ",", " ")
		}
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasSuffix(fields[len(fields)-1], "...") {
			c.MPI = append(c.MPI, fields...)
		}
	}
	return nil
}

// Log is the end of what the daemons have said, for people.
func (c *Cluster) Log() string {
	var all strings.Builder
	for _, d := range c.daemons {
		fmt.Fprintf(&all, "%s:\n%s\n", d.name, d.said())
	}
	return all.String()
}

// Stop ends the daemons. Jobs that still run are not its business: they end with the namespaces.
func (c *Cluster) Stop() error { return c.stop(0) }

// stop ends all daemons but the first ones, the last one first.
func (c *Cluster) stop(but int) (err error) {
	for len(c.daemons) > but {
		last := len(c.daemons) - 1
		err = errors.Join(err, c.daemons[last].stop())
		c.daemons = c.daemons[:last]
	}
	return err
}

// daemon is one that runs in the foreground.
type daemon struct {
	name  string
	cmd   *exec.Cmd
	log   string
	ended chan error
}

// start starts a daemon and waits until it is ready.
func (c *Cluster) start(isReady func() bool, name string, args ...string) error {
	d := &daemon{name: name, cmd: c.Command(name, args...), log: c.path(name + ".log"), ended: make(chan error, 1)}
	log, err := os.Create(d.log)
	if err != nil {
		return err
	}
	defer log.Close()
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	go func() { d.ended <- d.cmd.Wait() }()
	c.daemons = append(c.daemons, d)
	for end := time.Now().Add(ready); !isReady(); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-d.ended:
			d.ended <- err
			return fmt.Errorf("%s ended: %v\n%s", name, err, d.said())
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is not ready after %v\n%s", name, ready, d.said())
		}
	}
	return nil
}

// said is the end of its log.
func (d *daemon) said() string {
	text, _ := os.ReadFile(d.log) // nothing if it said nothing
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func (d *daemon) stop() error {
	_ = d.cmd.Process.Signal(unix.SIGTERM) // it may have ended
	select {
	case <-d.ended:
		return nil
	case <-time.After(ready):
		_ = d.cmd.Process.Kill()
		<-d.ended
		return fmt.Errorf("%s did not end at SIGTERM\n%s", d.name, d.said())
	}
}
