package profile

import (
	"errors"
	"testing"

	"pinwheel/predictor"
)

func TestTriggerWithoutGapsIsDamage(t *testing.T) {
	trigger := predictor.TrainedEntry{Context: 1, GapsNs: []int64{10}, Steps: 2, Trigger: 3, Confidence: 1, AfterNs: []int64{5}}
	none, bare := trigger, trigger
	none.Steps, none.Confidence, none.AfterNs = 0, 0, nil
	bare.AfterNs = nil
	for _, c := range []struct {
		entry predictor.TrainedEntry
		want  error
	}{{trigger, nil}, {none, nil}, {bare, ErrDamaged}} {
		packed, err := pack(&predictor.Trained{Entries: []predictor.TrainedEntry{c.entry}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(packed); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.entry, err, c.want)
		}
	}
}
