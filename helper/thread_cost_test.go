package helper

import (
	"testing"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
)

func TestThreadPublishesWhatTheDeciderHasCost(t *testing.T) {
	k := newKeeper(20 * ms)
	th := start(t, ThreadOptions{Decider: k, Clock: &clocktest.Fake{}, CPU: AnyCPU})
	testwait.Until(t, "the cost is that of the Decider", func() bool { return th.Stats().Cost == k.Cost() })
}
