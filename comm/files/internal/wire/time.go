package wire

import "time"

// Time is a modification time, or none. Nanoseconds alone would not reach beyond 2262, and file systems do.
type Time struct {
	Set     bool
	Sec, Ns int64 // since 1970
}

// TimeOf returns the Time of t, which is not set if t is zero.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{true, t.Unix(), int64(t.Nanosecond())}
}

// Time returns zero if t is not set.
func (t Time) Time() time.Time {
	if !t.Set {
		return time.Time{}
	}
	return time.Unix(t.Sec, t.Ns)
}

func (t *Time) fields(c *codec) {
	c.flag(&t.Set)
	c.i64(&t.Sec)
	c.i64(&t.Ns)
}
