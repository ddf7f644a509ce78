//go:build ucx

package main

import (
	"pinwheel/lab/bench/ucx"
	"pinwheel/mem"
	"pinwheel/verbs"
)

type theirs struct{ c *ucx.Cache }

func newPeer(p verbs.Provider) (cache, error) {
	c, err := ucx.New(p)
	return theirs{c}, err
}

func (t theirs) acquire(r mem.Range) (verbs.Region, bool, func(), error) { return t.c.Acquire(r) }
func (t theirs) name() string                                            { return peer }
func (t theirs) close()                                                  { t.c.Close() }
