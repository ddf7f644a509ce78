package launch

import (
	"slices"
	"strings"
	"testing"
)

func TestUCXCountsWhatARegistrationCostsUnderPinwheel(t *testing.T) {
	for _, c := range []struct{ environ, want string }{
		{"", "UCX_IB_MEM_REG_OVERHEAD=180ns UCX_IB_MEM_REG_GROWTH=0ns UCX_ZCOPY_THRESH=16384"},
		{"PINWHEEL_THRESHOLD=64k", "UCX_IB_MEM_REG_OVERHEAD=180ns UCX_IB_MEM_REG_GROWTH=0ns UCX_ZCOPY_THRESH=65536"},
		{"UCX_ZCOPY_THRESH=1m UCX_IB_MEM_REG_OVERHEAD=1us", "UCX_IB_MEM_REG_GROWTH=0ns"}, // the user's are kept
		{"PINWHEEL_POLICY=on-demand", ""}, // each use registers
		{"PINWHEEL_DISABLE=y", ""},
	} {
		t.Run(c.environ, func(t *testing.T) {
			var got []string
			for _, v := range registrationCosts(strings.Fields("HOME=/ " + c.environ)) {
				got = append(got, v.name+"="+v.value)
			}
			if want := strings.Fields(c.want); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
