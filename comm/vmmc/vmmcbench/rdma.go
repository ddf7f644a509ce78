package vmmcbench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/measure"
)

// rdmaLimit bounds the wait for the first message by RDMA.
const rdmaLimit = 10 * time.Second

var errNoRDMA = fmt.Errorf("messages did not go by RDMA within %v", rdmaLimit)

// settle waits until messages to an import go the way that is measured: at first they go through the connection.
func (s *stage) settle(i *vmmc.Import, over string) error {
	if over != overRDMA {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, rdmaLimit)
	defer cancel()
	if i.AwaitRDMA(ctx) {
		return nil
	}
	return cmp.Or(i.Err(), s.ctx.Err(), errNoRDMA)
}

// Lease is what becomes of the lease of an export that a loop sends to once in a period.
type Lease struct {
	PeriodNS float64 `json:"period_ns"`
	Late     float64 `json:"late"` // share of the messages that found no lease
	Held     float64 `json:"held"` // share of the time for which the export is registered
}

const (
	leasedBytes   = 1 << 20  // 1 MiB, of the export
	periodicBytes = 64 << 10 // 64 KiB, of a message
	maxPeriodic   = 100      // messages
)

// periodic sends a message in each period. The time of a message is that of its Send.
func periodic(period time.Duration) func(*stage, time.Duration) (figures, error) {
	return func(s *stage, about time.Duration) (f figures, err error) {
		n, err := s.nodes(overRDMA)
		if err != nil {
			return f, err
		}
		_, _, i, err := s.importOf(n, overRDMA, leasedBytes, vmmc.ExportOptions{})
		if err != nil {
			return f, err
		}
		src := make([]byte, periodicBytes)
		messages := min(max(int(about/(2*time.Millisecond)), 5), maxPeriodic)
		late, held, looks := 0, 0, 0
		var sending time.Duration
		busy := measure.ProcessorTime()
		for range messages {
			if !i.RDMA() {
				late++
			}
			begin := time.Now()
			if err := i.Send(s.ctx, src, 0, vmmc.SendOptions{}); err != nil {
				return f, err
			}
			sending += time.Since(begin)
			for end := begin.Add(period); time.Now().Before(end); looks++ {
				if n[1].Stats().PinnedBytes > 0 {
					held++
				}
				select {
				case <-time.After(period / 20):
				case <-s.ctx.Done():
					return f, s.ctx.Err()
				}
			}
		}
		all := float64(messages)
		return figures{
			ns: float64(sending) / all, cpu: float64(measure.ProcessorTime()-busy) / all,
			late: float64(late) / all, held: float64(held) / float64(max(looks, 1)),
		}, nil
	}
}
