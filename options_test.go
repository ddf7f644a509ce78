package pinwheel

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pinwheel/internal/engine"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/queue"
	"pinwheel/verbs"
)

func TestSettingsBecomeOptions(t *testing.T) {
	load := func(environ ...string) Options {
		s, warnings := settings.Load(environ)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		return fromSettings(s)
	}
	for _, c := range []struct {
		entry string
		want  func(*Options)
	}{
		{"PINWHEEL_DISABLE=y", func(o *Options) { o.Disable = true }},
		{"PINWHEEL_THRESHOLD=0", func(o *Options) { o.ThresholdBytes = 1 }},
		{"PINWHEEL_THRESHOLD=inf", func(o *Options) { o.ThresholdBytes = mem.Unlimited }},
		{"PINWHEEL_POLICY=lru", func(o *Options) { o.Policy = LRU }},
		{"PINWHEEL_IDLE_POLICY=off", func(o *Options) { o.IdlePolicy = "off" }},
		{"PINWHEEL_COST=1%", func(o *Options) { o.Cost = 0.01 }},
		{"PINWHEEL_COST=0", func(o *Options) { o.Cost, o.IdlePolicy = engine.NoCost, "conservative" }},
		{"PINWHEEL_HELPER_CPU=0", func(o *Options) { o.HelperCPUs = []int{0} }},
		{"PINWHEEL_WINDOW=0", func(o *Options) { o.Window = NoWindow }},
		{"PINWHEEL_BUDGET=0", func(o *Options) { o.BudgetBytes = 1 }},
		{"PINWHEEL_BUDGET=inf", func(o *Options) { o.BudgetBytes = mem.Unlimited }},
		{"PINWHEEL_WATCH=pfn", func(o *Options) { o.Watch = "pfn" }},
		{"PINWHEEL_PROVIDER=mlock", func(o *Options) { o.ProviderName = "mlock" }},
		{"PINWHEEL_RDMA_DEVICE=mlx5_0:1", func(o *Options) { o.RDMADevice = "mlx5_0:1" }},
	} {
		want := load()
		c.want(&want)
		if got := load(c.entry); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", c.entry, got, want)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefusedInOneLine(t *testing.T) {
	for want, o := range map[string]Options{
		"window":        {Window: predictor.MaxWindow + 1},
		"processor -1":  {HelperCPUs: []int{0, -1}},
		"costs":         {Costs: verbs.Costs{Deregister: verbs.Cost{PerPageNs: -1}}},
		"costs of NaN":  {Costs: verbs.Costs{Register: verbs.Cost{FixedNs: math.NaN()}}},
		"costs of +Inf": {Costs: verbs.Costs{Register: verbs.Cost{FixedNs: math.Inf(1)}}},
		"policy":        {Policy: "lucky"},
		"costs of 1e13": {Costs: verbs.Costs{Register: verbs.Cost{PerPageNs: 1e13}}},
		"negative":      {BudgetBytes: -1},
		"negative q":    {QueueEntries: -1},
		"entries":       {QueueEntries: 1 << 40},
		"entries twice": {QueueEntries: queue.MaxEntries + 1},
		"processor 2":   {HelperCPUs: []int{1 << 40}},
		"idle":          {IdlePolicy: "lucky"},
		"cost":          {HelperShare: 1.5},
		"cost of NaN":   {Cost: math.NaN()},
	} {
		err := o.EnsureDefaults()
		if word, _, _ := strings.Cut(want, " "); err == nil || !strings.Contains(err.Error(), word) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line that names it", want, err)
		}
	}
}

func TestHelperShareIsTheFormerCost(t *testing.T) {
	for _, o := range []Options{{HelperShare: .05}, {Cost: .05}, {HelperShare: .2, Cost: .05}} {
		if err := o.EnsureDefaults(); err != nil || o.Cost != .05 {
			t.Errorf("cost %g, error %v", o.Cost, err)
		}
	}
}

// An empty environment and a zero Options must mean the same, but for Watch:
// whoever writes Options can call Invalidate.
func TestDefaultsOfOptionsAndSettingsAgree(t *testing.T) {
	var zero Options
	fromEmpty := fromSettings(settings.Default())
	fromEmpty.Watch = ""
	for _, o := range []*Options{&zero, &fromEmpty} {
		if err := o.EnsureDefaults(); err != nil {
			t.Fatal(err)
		}
		o.Warn = nil
	}
	if !reflect.DeepEqual(zero, fromEmpty) {
		t.Errorf("zero Options %+v, empty environment %+v", zero, fromEmpty)
	}
}

func TestRecordOutsideAnMPIProgramIsReported(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer func(f *os.File) { os.Stderr = f }(os.Stderr)
	os.Stderr = file
	for log, want := range map[string]string{"warn": "PINWHEEL_RECORD", "off": ""} {
		t.Setenv("PINWHEEL_RECORD", "trace.pwt")
		t.Setenv("PINWHEEL_LOG", log)
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		FromEnvironment()
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("PINWHEEL_LOG=%s: %q, want a word about %q", log, got, want)
		}
	}
}
