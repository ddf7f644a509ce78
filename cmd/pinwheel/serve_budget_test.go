package main

import (
	"testing"

	"pinwheel/files"
	"pinwheel/internal/command"
)

func TestBudgetBoundsWhatClientsSend(t *testing.T) {
	for budget, want := range map[command.Size]uint64{0: files.DefaultBudget, 8 << 20: 8 << 20} {
		c := serveCmd{Listen: []string{"unix:s"}, Budget: budget}
		n, _, err := c.node()
		if err != nil || n.MaxPinned != want {
			t.Errorf("--budget %v: %d bytes, %v", budget, n.MaxPinned, err)
		}
	}
}
