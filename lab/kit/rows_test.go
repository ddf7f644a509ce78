package kit

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestRowsAreChosenByPatterns(t *testing.T) {
	rows := []string{"pipes/1", "pipes/2", "hot/static", "hot/auto", "get"}
	for _, c := range []struct{ patterns, want []string }{
		{[]string{"pipes/*"}, []string{"pipes/1", "pipes/2"}},
		{[]string{"get", "hot/a*", "*/auto"}, []string{"hot/auto", "get"}},
		{[]string{"get", "nothing"}, nil},
		{[]string{"["}, nil},
	} {
		got, err := Choose(rows, func(r string) string { return r }, c.patterns)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %q, %v", c.patterns, got, err)
		}
	}
}

func TestNothingBeginsOnceItIsOver(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	if why := (Limits{time.Now(), time.Hour}).Over(ctx); why != "" {
		t.Errorf("at once: %s", why)
	}
	if why := (Limits{time.Now().Add(-time.Hour), time.Minute}).Over(ctx); why != "1m0s are over" {
		t.Errorf("after an hour: %q", why)
	}
	interrupt()
	if why := (Limits{time.Now(), time.Hour}).Over(ctx); why != "interrupted" {
		t.Errorf("interrupted: %q", why)
	}
}

func TestFiguresOfNoCommitAreRefused(t *testing.T) {
	for version, good := range map[string]bool{"1f2e3d4c": true, "v0.3.0": true, "1f2e3d4c-dirty": false, "v0.3.1+dirty": false, "(unknown)": false, "": false} {
		if err := (&Head{Version: version}).Publishable(); (err == nil) != good {
			t.Errorf("%q: %v", version, err)
		}
	}
}
