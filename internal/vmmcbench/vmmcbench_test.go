package vmmcbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinwheel/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryMeasurementIsMadeAndPrinted(t *testing.T) {
	testwait.Bound(t)
	steps := 0
	o := Options{Time: time.Millisecond, Rounds: 1, Step: func() { steps++ }}
	all, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := Steps(o); steps != want || len(all) != want || err != nil {
		t.Errorf("%d steps, %d results, want %d, %v", steps, len(all), want, err)
	}
	for _, r := range all {
		if !(r.NS > 0) || !(r.CPU >= 0) {
			t.Errorf("%+v", r)
		}
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
		if !(c.Times > 0) {
			t.Errorf("nothing was measured for %q", c.What)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	testwait.Bound(t)
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Time: time.Millisecond, Rounds: 1000, Step: cancel}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
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
