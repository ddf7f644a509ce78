package cgroup

import (
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CPUQuota follows the quotas on processor time of the control groups that this process is in. The kernel
// stops all threads of a group for the rest of a period, mostly 100 ms, once the group has used its quota
// (Documentation/scheduler/sched-bwc.rst). The groups are those of the time of NewCPUQuota; their quotas
// may change. A CPUQuota belongs to one goroutine at a time.
type CPUQuota struct {
	root   fs.FS
	groups []cpuGroup
}

type cpuGroup struct {
	group
	acct string // v1: its directory in the hierarchy of cpuacct, "" if it has none
	last cpuUsage
}

// cpuUsage is what a group has used so far.
type cpuUsage struct {
	at                 time.Time // zero: never read
	usedNs             int64     // -1: unknown
	periods, throttled int64     // with a quota, and of those the ones in which it did not suffice
}

// NewCPUQuota finds the control groups of this process.
func NewCPUQuota(root fs.FS) *CPUQuota {
	q := &CPUQuota{root: root}
	accounts := groupsOf(root, "cpuacct")
	for _, g := range groupsOf(root, "cpu") {
		c := cpuGroup{group: g}
		if i := slices.IndexFunc(accounts, func(a group) bool { return !a.v2 && a.path == g.path }); i >= 0 {
			c.acct = accounts[i].dir
		}
		q.groups = append(q.groups, c)
	}
	return q
}

// CPULimit is the tightest quota of a process.
type CPULimit struct {
	Processors float64 // as 1.5; +Inf without a quota
	File       string  // that sets it
	Throttled  float64 // share of the periods so far in which the group was stopped, 0 to 1
}

// Limit returns the tightest quota.
func (q *CPUQuota) Limit() CPULimit {
	l := CPULimit{Processors: math.Inf(1)}
	for _, g := range q.groups {
		n, file := g.limit(q.root)
		if n >= l.Processors {
			continue
		}
		l = CPULimit{Processors: n, File: "/" + file}
		if u := g.usage(q.root); u.periods > 0 {
			l.Throttled = float64(u.throttled) / float64(u.periods)
		}
	}
	return l
}

// Left returns how many processors' worth of time the quotas left unused since the last call: +Inf without a
// quota, 0 if a group was stopped meanwhile. now is the time of the call. The first call, and one without
// knowledge of what was used, return the whole quota.
func (q *CPUQuota) Left(now time.Time) float64 {
	left := math.Inf(1)
	for i := range q.groups {
		g := &q.groups[i]
		n, _ := g.limit(q.root)
		if math.IsInf(n, 1) {
			g.last = cpuUsage{}
			continue
		}
		before, after := g.last, g.usage(q.root)
		after.at = now
		g.last = after
		elapsed := now.Sub(before.at)
		switch {
		case before.at.IsZero() || elapsed <= 0:
		case after.throttled > before.throttled:
			n = 0
		case before.usedNs >= 0 && after.usedNs >= before.usedNs:
			n = max(0, n-float64(after.usedNs-before.usedNs)/float64(elapsed))
		}
		left = min(left, n)
	}
	return left
}

// limit returns the quota of a group in processors and the file that has it: cpu.max of version 2, "QUOTA PERIOD" or
// "max PERIOD"; cpu.cfs_quota_us of version 1, -1 for none.
func (g *cpuGroup) limit(root fs.FS) (processors float64, file string) {
	file = g.dir + "/cpu.max"
	v, _ := readInts(root, file)
	if !g.v2 {
		file = g.dir + "/cpu.cfs_quota_us"
		quota, _ := readInts(root, file)
		period, _ := readInts(root, g.dir+"/cpu.cfs_period_us")
		v = append(quota, period...)
	}
	if len(v) != 2 || v[0] < 0 || v[1] <= 0 {
		return math.Inf(1), ""
	}
	return float64(v[0]) / float64(v[1]), file
}

// usage reads cpu.stat. Only that of version 2 has the time that was used; with version 1, cpuacct.usage has it.
func (g *cpuGroup) usage(root fs.FS) cpuUsage {
	u := cpuUsage{usedNs: -1}
	text, _ := fs.ReadFile(root, g.dir+"/cpu.stat")
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "nr_periods":
			u.periods = n
		case name == "nr_throttled":
			u.throttled = n
		case name == "usage_usec":
			u.usedNs = n * 1000
		}
	}
	if n, ok := readInts(root, g.acct+"/cpuacct.usage"); !g.v2 && ok {
		u.usedNs = n[0]
	}
	return u
}
