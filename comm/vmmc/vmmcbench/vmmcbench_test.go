package vmmcbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinwheel/internal/measure"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryMeasurementIsMadeAndPrinted(t *testing.T) {
	testwait.Bound(t)
	steps := 0
	o := Options{Time: time.Millisecond, Rounds: 1, Step: func(string) { steps++ }}
	all, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := Steps(o); steps != want || len(all) != want {
		t.Errorf("%d steps, %d results, want %d", steps, len(all), want)
	}
	for _, r := range all {
		if !(r.NS > 0) || !(r.CPU >= 0) {
			t.Errorf("%+v", r)
		}
	}
	if os.Getenv(rdmatest.RequireEnv) != "" && !slices.ContainsFunc(all, func(r Result) bool { return r.Over == overRDMA }) {
		t.Errorf("%s is set, but nothing went by RDMA", rdmatest.RequireEnv)
	}
	var text, data bytes.Buffer
	if err := WriteTables(&text, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{automatic, deliberate, notified, socket, ourCalls, theirs, streams, "4096 pages", "claim"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := WriteJSON(&data, all); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(data.Bytes(), &r); err != nil || len(r.Results) != len(all) || len(r.Claims) < 5 {
		t.Errorf("%v: %d results, %d claims", err, len(r.Results), len(r.Claims))
	}
	for _, c := range r.Claims {
		if !(c.Times > 0) && c.Relation == measure.AtLeast {
			t.Errorf("nothing was measured for %q", c.What)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	testwait.Bound(t)
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Time: time.Millisecond, Rounds: 1000, Step: func(string) { cancel() }}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// One that fails, as a program of others that does not start, takes nothing from the others.
func TestFailedMeasurementIsSaidAndTheOthersGoOn(t *testing.T) {
	testwait.Bound(t)
	broken := errors.New("no such device")
	tries := 0
	ms := all(equipment{})[:2]
	ms = append(ms, measurement{Result: Result{Kind: Latency, By: perftest, Over: overRDMA, Bytes: 8},
		whole: func(*stage, time.Duration) (figures, error) { tries++; return figures{}, broken }})
	var said []error
	o := Options{Time: time.Millisecond, Rounds: 2, Failed: func(err error) { said = append(said, err) }}
	if err := o.EnsureDefaults(); err != nil {
		t.Fatal(err)
	}
	results, err := o.measure(t.Context(), t.TempDir(), ms)
	if err != nil || len(results) != 3 || !(results[0].NS > 0) || results[2].Failed != broken.Error() || tries != 1 {
		t.Errorf("%v: %+v after %d tries", err, results, tries)
	}
	if len(said) != 1 || !errors.Is(said[0], broken) || !strings.Contains(said[0].Error(), "latency by perftest over RDMA, 8 B") {
		t.Errorf("it says %v", said)
	}
	for _, c := range Claims(results) {
		if strings.Contains(c.What, "ib_write_lat") && (c.Missing == "" || c.Holds()) {
			t.Errorf("%+v", c)
		}
	}
	var text bytes.Buffer
	if err := WriteTables(&text, results); err != nil || !strings.Contains(text.String(), "not measured") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestWhatWasMeasuredBeforeTheEndIsThere(t *testing.T) {
	testwait.Bound(t)
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	o := Options{Time: time.Millisecond, Rounds: 1, Step: func(string) {
		if steps++; steps == 3 {
			cancel()
		}
	}}
	if results, err := Run(ctx, o); !errors.Is(err, context.Canceled) || len(results) != 2 || !(results[1].NS > 0) {
		t.Errorf("%v: %+v", err, results)
	}
}

func TestClaimsCompareWhatTheySay(t *testing.T) {
	all := []Result{
		{Kind: Latency, By: automatic, Over: shared, Bytes: 8, NS: 100},
		{Kind: Latency, By: socket, Over: tcp, Bytes: 8, NS: 299},
	}
	c := Claims(all)
	if c[0].Times != 2.99 || c[0].Holds() {
		t.Errorf("%+v", c[0])
	}
	all[1].NS = 300
	if c = Claims(all); !c[0].Holds() || c[1].Holds() {
		t.Errorf("%+v", c)
	}
}

func TestClaimsOfRDMAAreThereIfItWasMeasured(t *testing.T) {
	all := []Result{
		{Kind: Latency, By: deliberate, Over: overRDMA, Bytes: 8, NS: 1300},
		{Kind: Latency, By: perftest, Over: overRDMA, Bytes: 8, NS: 1000},
		{Kind: Bandwidth, By: deliberate, Over: overRDMA, Bytes: 1 << 20, NS: 1000},
		{Kind: Bandwidth, By: perftest, Over: overRDMA, Bytes: 1 << 20, NS: 900},
		{Kind: Bandwidth, By: ucxPut, Over: overRDMA, Bytes: 1 << 20, NS: 1000},
		{Kind: Periodic, By: deliberate, Over: overRDMA, Lease: &Lease{PeriodNS: 2e7, Late: 0.05}},
	}
	before := len(Claims(nil))
	c := Claims(all)
	if len(c) != before+4 {
		t.Fatalf("%d claims, %d without RDMA", len(c), before)
	}
	c = c[before:]
	for k, want := range []struct {
		times float64
		bound string
	}{{1.3, "<= 1.30"}, {0.9, ">= 0.90"}, {1, ">= 1.00"}, {0.05, "<= 0.05"}} {
		if c[k].Times != want.times || c[k].Want() != want.bound || !c[k].Holds() {
			t.Errorf("%+v, %s", c[k], c[k].Want())
		}
	}
	all[0].NS, all[2].NS, all[5].Lease.Late = 1301, 1001, 0.06
	for _, c := range Claims(all)[before:] {
		if c.Holds() {
			t.Errorf("%+v holds", c)
		}
	}
	var text bytes.Buffer
	if err := WriteTables(&text, all); err != nil {
		t.Fatal(err)
	}
	fields := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{"20ms RDMA 0 6 % 0 %", "perftest RDMA 1 - - - - - 1165084 -", "of ib_write_lat's 1.30 <= 1.30"} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestResultsOfOtherProgramsAreRead(t *testing.T) {
	latency := " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n" +
		" 8       1000          1.02           35.10        1.25     	       1.31\n"
	bandwidth := " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n" +
		" 1048576    1000             9000.00            8000.00		   0.008000\n"
	if v, err := writeLatency.result(latency, 8); err != nil || writeLatency.ns(v, 8) != 1250 {
		t.Errorf("%v, %v", v, err)
	}
	v, err := writeBandwidth.result(bandwidth, 1<<20)
	if err != nil || writeBandwidth.ns(v, 1<<20) != 125_000 { // 1 MiB at 8000 MiB a second
		t.Errorf("%v, %v", v, err)
	}
	put := "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |\n" +
		"Final:                  1000      0.250   125.000   126.000     7900.00    8000.00        8000        8000\n"
	if v, err := putBandwidth.result(put, 1<<20); err != nil || putBandwidth.ns(v, 1<<20) != 125_000 {
		t.Errorf("%v, %v", v, err)
	}
	for what, out := range map[string]string{
		"another size": latency, "nothing": "", "no number": " 4096 1 x x x\n", "no bandwidth": " 4096 1 0.00 0.00 0\n",
	} {
		if v, err := writeBandwidth.result(out, 4096); err == nil {
			t.Errorf("%s: %v", what, v)
		}
	}
}

func TestTablesAreThoseOfTheResults(t *testing.T) {
	var text bytes.Buffer
	err := WriteTables(&text, []Result{
		{Kind: Latency, By: automatic, Over: shared, Bytes: 8, NS: 123, CPU: 246},
		{Kind: Bandwidth, By: socket, Over: tcp, Bytes: 4096, NS: 4096, CPU: 20_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{automatic, shared, "0.123 0.246 - - - - - -"}, {socket, tcp, "- - - - 1000 20 - -"},
	} {
		if fields := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(fields, strings.Join(want, " ")) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
