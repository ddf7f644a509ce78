package launch

import (
	"strconv"

	"pinwheel/internal/settings"
)

// registrationCosts returns the variables by which UCX knows what a registration costs under Pinwheel. Without its own
// cache it counts 16 us and .06 ns a byte for each (uct/ib/base/ib_md.c), so it copies messages that it would send from
// their buffers with its cache: those of 2 to 27 KiB in version 1.13, and in versions that compare all protocols by
// their costs (ucp/proto) up to hundreds of KiB on a fast fabric, and all of them on a slow one. Nothing would be left
// to manage. Messages below the threshold are registered for each use, so those are copied.
func registrationCosts(environ []string) (vars []variable) {
	s, _ := settings.Load(environ)
	if s.Disable || s.Policy == "on-demand" {
		return nil
	}
	for _, v := range []variable{
		{"UCX_IB_MEM_REG_OVERHEAD", "180ns"}, // what UCX 1.13 counts for a hit of its cache
		{"UCX_IB_MEM_REG_GROWTH", "0ns"},
		{"UCX_ZCOPY_THRESH", strconv.FormatInt(s.ThresholdBytes, 10)},
	} {
		if _, set := Getenv(environ, v.name); !set {
			vars = append(vars, v)
		}
	}
	return vars
}
