package vmwatch

import (
	"bytes"
	"compress/gzip"
	"testing"
	"testing/fstest"
)

func TestPreemptionModelOfTheKernel(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte("# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n"))
	z.Close()
	const dynamic = "#1 SMP PREEMPT_DYNAMIC Debian 6.12"
	for _, c := range []struct {
		name, version string
		files         map[string]string
		want          string
	}{
		{"built without", "#1 SMP Debian 6.1", nil, "voluntary"},
		{"built with", "#1 SMP PREEMPT Tue", nil, "full"},
		{"real time", "#1 SMP PREEMPT_RT Tue", nil, "rt"},
		{"dynamic, told by debugfs", dynamic,
			map[string]string{"sys/kernel/debug/sched/preempt": "none (voluntary) full lazy\n", "proc/cmdline": "preempt=full"},
			"voluntary"},
		{"dynamic, told by the command line", dynamic,
			map[string]string{"proc/cmdline": "quiet preempt=full\n", "boot/config-6.12": "CONFIG_PREEMPT_VOLUNTARY=y\n"},
			"full"},
		{"dynamic, as built, in /proc", dynamic,
			map[string]string{"proc/cmdline": "quiet\n", "proc/config.gz": zipped.String()}, "none"},
		{"dynamic, as built, in /boot", dynamic,
			map[string]string{"boot/config-6.12": "CONFIG_PREEMPT_VOLUNTARY=y\n"}, "voluntary"},
		{"dynamic, lazy", dynamic, map[string]string{"boot/config-6.12": "CONFIG_PREEMPT_LAZY=y\n"}, "lazy"},
		{"dynamic, nothing to be found", dynamic, nil, "unknown"},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := preemptionModel(root, "6.12", c.version); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
