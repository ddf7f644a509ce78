package slurm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Variable asks for the tests of this package. The processes of Isolate also tell each
// other by it which of them they are.
const Variable = "LIVE_TEST_SLURM"

const (
	isInit = "init" // the first process of the namespaces
	isTest = "test" // its child
)

// Inside reports whether this process is in the namespaces of Isolate.
func Inside() bool { return os.Getenv(Variable) == isTest }

// Isolate calls run in a copy of this process that has namespaces of its own, and returns
// its result. The caller must do nothing before. If Missing says that there can be no
// cluster, it calls run here.
func Isolate(run func() int) int {
	switch os.Getenv(Variable) {
	case isTest:
		return run()
	case isInit:
		return beInit()
	}
	if Missing() != "" {
		return run()
	}
	before := groups()
	runtime.LockOSThread() // whose end Pdeathsig tells of, prctl(2)
	first := again(isInit)
	first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
		Pdeathsig:  unix.SIGKILL,
	}
	if refused = first.Start(); refused != nil {
		return run()
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-stop
		_ = first.Process.Kill() // and so all processes of the namespace
	}()
	_ = first.Wait() // its state says it
	if err := removeGroups(before); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return first.ProcessState.ExitCode()
}

// again returns this command as another of the processes of Isolate.
func again(as string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), Variable+"="+as)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// beInit is the first process: it mounts, starts the tests, and waits for processes whose
// parents have ended, as any init does.
func beInit() int {
	child := again(isTest)
	child.Env = append(child.Env, "TMPDIR="+Scratch)
	err := errors.Join(mounts(), loopback())
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case pid == child.Process.Pid && status.Signaled():
			return 128 + int(status.Signal())
		case pid == child.Process.Pid && status.Exited():
			return status.ExitStatus()
		case err != nil && !errors.Is(err, unix.EINTR):
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// Scratch is where the daemons and the tests write. It is gone with the namespaces.
const Scratch = "/run/tmp"

// mounts gives this process and those below it their own /proc, /run and /dev/shm.
func mounts() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	for _, m := range []struct {
		kind, at string
		flags    uintptr
		data     string
	}{
		{"", "/", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", flags | unix.MS_NOEXEC, ""},
		{"tmpfs", "/run", flags, "mode=755"},
		{"tmpfs", "/dev/shm", flags, "mode=1777"},
	} {
		if err := unix.Mount("pinwheel", m.at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return os.Mkdir(Scratch, 0o755)
}

// loopback makes 127.0.0.1 work, and gives the interface one more address (netdevice(7)): slurmctld
// resolves names with AI_ADDRCONFIG, for which 127.0.0.1 alone is no network.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(socket)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	alias, err := unix.NewIfreq("lo:0")
	if err != nil {
		return err
	}
	return errors.Join(
		os.NewSyscallError("ioctl SIOCSIFFLAGS", unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, up)),
		alias.SetInet4Addr([]byte{192, 0, 2, 1}), // for documentation, RFC 5737
		os.NewSyscallError("ioctl SIOCSIFADDR", unix.IoctlIfreq(socket, unix.SIOCSIFADDR, alias)),
	)
}
