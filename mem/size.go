package mem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unlimited is the byte or region count that stands for "no limit", written "inf".
const Unlimited = math.MaxInt64

// FormatBytes formats a byte count with a binary unit: "512 B", "16.0 KiB", "1.5 GiB".
func FormatBytes(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		v /= 1024
		if v < 1023.95 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// ParseBytes reads a size as the HPC world writes it: a number with an
// optional binary unit K, M, G or T (also KB, KiB; case does not matter), or
// "inf" for Unlimited. It fails on signs, fractions and overflow.
func ParseBytes(s string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	if t == "inf" {
		return Unlimited, nil
	}
	digits := strings.TrimRight(t, "kmgtib")
	shift, ok := unitShift[t[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 || strings.HasPrefix(digits, "+") || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("size %q is not a number with K, M, G or T, or inf", s)
	}
	return n << shift, nil
}

var unitShift = map[string]uint{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20,
	"g": 30, "gb": 30, "gib": 30, "t": 40, "tb": 40, "tib": 40}
