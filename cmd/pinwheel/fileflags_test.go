package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pinwheel/files"
)

// RDMA may come later than the first answer of the server.
func TestTransportIsAskedForUntilItIsRDMA(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		wants transport
		comes int // with this answer; 0: never
		fails error
		asked int
		ok    bool
	}{
		{wants: "rdma", comes: 3, asked: 3, ok: true},
		{wants: "rdma", fails: broken, asked: 1},
		{wants: "rdma", asked: 10},
		{wants: "auto", asked: 0, ok: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 950*time.Millisecond)
			defer cancel()
			way, asked := files.ByTLS, 0
			err := test.wants.await(ctx, func() string { return way }, func(context.Context) error {
				if asked++; asked == test.comes {
					way = files.ByRDMA
				}
				return test.fails
			})
			if (err == nil) != test.ok || asked != test.asked || test.fails != nil && !errors.Is(err, test.fails) {
				t.Errorf("%+v: asked %d times, %v", test, asked, err)
			}
		})
	}
}
