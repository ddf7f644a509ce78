package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// inGroupEnv makes the test binary a process that joins the control group in this directory and there
// uses up its quota.
const inGroupEnv = "PINWHEEL_TEST_CGROUP"

func init() {
	if dir := os.Getenv(inGroupEnv); dir != "" {
		if err := useUpQuota(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func useUpQuota(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return err
	}
	quota := NewCPUQuota(os.DirFS("/"))
	l := quota.Limit()
	if l.Processors != realQuota || path.Dir(l.File) != dir {
		return fmt.Errorf("the quota of %s is %+v, want %g processors", dir, l, realQuota)
	}
	if left := quota.Left(time.Now()); left != realQuota {
		return fmt.Errorf("%g processors left at first", left)
	}
	// Busy until the kernel has stopped this process. Nothing may be left a moment before that.
	for quota.Left(time.Now()) > 0 || quota.Limit().Throttled <= 0 {
	}
	for left := 0.0; left < realQuota/2; left = quota.Left(time.Now()) { // idle until there is some left again
		time.Sleep(realPeriod)
	}
	return nil
}

// realQuota is so small that any busy loop exceeds it on a machine that is busy itself. The period is the longest
// possible, so that an emulated processor can look at the quota without using up that of a period.
const (
	realQuota  = 0.05 // processors
	realPeriod = time.Second
)

func TestQuotaOfARealGroupIsFollowed(t *testing.T) {
	cmd := testwait.Command(t, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), inGroupEnv+"="+makeGroup(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// makeGroup makes a control group with the quota realQuota. It is removed after the test. Where that is not
// possible, the test is skipped.
func makeGroup(t *testing.T) (dir string) {
	t.Helper()
	groups := groupsOf(os.DirFS("/"), "cpu")
	if len(groups) == 0 {
		t.Skip("no control groups are mounted")
	}
	// A group of version 2 with processes in it can't have limited groups below, unless it is the root.
	outer := groups[len(groups)-1]
	top := "/" + outer.dir
	dir = filepath.Join(top, "pinwheel-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs to make a control group: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	write := func(name, value string) {
		if err := os.WriteFile(name, []byte(value), 0); err != nil {
			t.Skipf("needs the cpu controller in a control group of its own: %v", err)
		}
	}
	period := strconv.FormatInt(realPeriod.Microseconds(), 10)
	quota := strconv.FormatInt(int64(realQuota*float64(realPeriod.Microseconds())), 10)
	if outer.v2 {
		write(top+"/cgroup.subtree_control", "+cpu")
		write(dir+"/cpu.max", quota+" "+period)
	} else {
		write(dir+"/cpu.cfs_period_us", period)
		write(dir+"/cpu.cfs_quota_us", quota)
	}
	return dir
}
