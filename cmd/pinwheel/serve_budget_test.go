package main

import (
	"testing"

	"pinwheel/comm/files"
	"pinwheel/internal/tools/command"
)

func TestBudgetBoundsWhatClientsSend(t *testing.T) {
	given := command.Size(8 << 20)
	for budget, want := range map[*command.Size]uint64{nil: files.DefaultBudget, &given: 8 << 20} {
		c := serveCmd{Listen: []string{"unix:s"}, Budget: budget}
		n, _, err := c.node()
		if err != nil || n.MaxPinned != want {
			t.Errorf("--budget %v: %d bytes, %v", budget, n.MaxPinned, err)
		}
	}
}
