package calibrate_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/calibrate"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

func TestRunMeasuresARealProviderAndLeavesNothing(t *testing.T) {
	before := verbstest.Pinned(t)
	p, err := uring.Open(uring.Options{})
	verbstest.Available(t, err)
	c, err := calibrate.Run(p, calibrate.Options{MaxPages: 256, Rounds: 9})
	if err != nil {
		t.Fatal(err)
	}
	if c.Provider != "uring" || c.Source != "measured" || c.Machine == "" || c.Kernel == "" || c.Date == "" || c.PageBytes != mem.PageSize {
		t.Errorf("calibration does not say where it is from: %+v", c)
	}
	// Faulting pages in costs far more than pinning them, on any machine.
	if cold := c.Untouched; cold == nil || cold.Register.Ns(256) <= c.Touched.Register.Ns(256) {
		t.Errorf("untouched memory %+v, touched %+v", cold, c.Touched)
	}
	if len(c.Touched.Register.Points) != 9 || c.Touched.Register.Points[8].Pages != 256 {
		t.Errorf("ladder %+v", c.Touched.Register.Points)
	}
	if u := p.Usage(); u != (verbs.Usage{}) {
		t.Errorf("%+v left registered", u)
	}
	if err := p.Close(); err != nil || verbstest.Pinned(t) != before {
		t.Errorf("after Close, %v, %d bytes are pinned, before %d", err, verbstest.Pinned(t), before)
	}
}

func TestLadderStaysWithinTheLimits(t *testing.T) {
	p := sim.New(sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(128 * mem.PageSize)}})
	c, err := calibrate.Run(p, calibrate.Options{Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Touched.Register.Points); c.Touched.Register.Points[n-1].Pages != 16 {
		t.Errorf("largest size is %d pages with a limit of 128", c.Touched.Register.Points[n-1].Pages)
	}
	if c.Huge != nil {
		t.Error("huge pages were measured within 16 pages")
	}
}

func TestFailingProviderFailsTheCalibration(t *testing.T) {
	third := []error{nil, nil, syscall.ENOMEM}
	for name, faults := range map[string]*sim.Failures{"register": {Register: third}, "deregister": {Deregister: third}} {
		_, err := calibrate.Run(sim.New(sim.Options{Fail: faults.Fail}), calibrate.Options{MaxPages: 16, Rounds: 2})
		if !errors.Is(err, verbs.ErrPinnedMemory) || !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileReadsBackAsWritten(t *testing.T) {
	want, err := calibrate.Run(sim.New(sim.Options{}), calibrate.Options{MaxPages: 16, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.json")
	for range 2 { // also over an existing file
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := calibrate.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwrote %+v", got, want)
	}
}

func TestWhatIsNoCalibrationIsRefused(t *testing.T) {
	const good = `{"format":"pinwheel-calibration","version":1,"provider":"x","touched":{"register":{"per_page_ns":1,"fixed_ns":1},"deregister":{"per_page_ns":0,"fixed_ns":1}}}`
	if _, err := calibrate.Read(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"not JSON":      "calibration",
		"truncated":     good[:len(good)-2],
		"other format":  strings.Replace(good, "pinwheel-", "", 1),
		"newer version": strings.Replace(good, `"version":1`, `"version":2`, 1),
		"negative cost": strings.Replace(good, `"per_page_ns":1`, `"per_page_ns":-1`, 1),
		"no cost":       strings.Replace(good, `"per_page_ns":0,"fixed_ns":1`, "", 1),
	} {
		if _, err := calibrate.Read(strings.NewReader(text)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want an error of one line", name, err)
		}
	}
	if _, err := calibrate.Load(filepath.Join(t.TempDir(), "absent.json")); err == nil || !strings.Contains(err.Error(), "absent.json") {
		t.Errorf("absent file: %v", err)
	}
	var out bytes.Buffer
	if err := new(calibrate.Calibration).Write(&out); err != nil {
		t.Fatal(err)
	}
	if _, err := calibrate.Read(&out); err == nil {
		t.Error("an empty calibration was read")
	}
}
