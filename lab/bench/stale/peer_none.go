//go:build !ucx

package main

import (
	"errors"

	"pinwheel/verbs"
)

func newPeer(verbs.Provider) (cache, error) {
	return nil, errors.New("built without UCX (install libucx-dev and build with -tags ucx)")
}
