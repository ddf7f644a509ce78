package vmmcbench

import (
	"bytes"
	"io"

	"pinwheel/comm/vmmc"
)

// sends is messages of a size in a row, with all that their receiver must do: nothing.
func sends(over string, size int, o vmmc.SendOptions) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		n, err := s.nodes(over)
		if err != nil {
			return nil, err
		}
		_, e, i, err := s.importOf(n, over, size, vmmc.ExportOptions{Queue: 1024})
		if err != nil {
			return nil, err
		}
		if o.Notify {
			e.Handle(func(vmmc.Notification) {})
		}
		src := make([]byte, size)
		return func() error { return i.Send(s.ctx, src, 0, o) }, nil
	}
}

// stores is the same by automatic update: stores into memory that is mapped, and what brings them over if it isn't shared.
func stores(over string, size int) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		n, err := s.nodes(over)
		if err != nil {
			return nil, err
		}
		whole := max(size, 4096) // what can be mapped
		_, _, i, err := s.importOf(n, over, whole, vmmc.ExportOptions{})
		if err != nil {
			return nil, err
		}
		local, err := n[0].Alloc(uint64(whole))
		if err != nil {
			return nil, err
		}
		m, err := i.Map(0, local, vmmc.MapOptions{Interval: -1})
		if err != nil {
			return nil, err
		}
		// Each message differs from the one before: memory that has not changed is not sent.
		src, next := [2][]byte{make([]byte, size), bytes.Repeat([]byte{1}, size)}, 0
		return func() error {
			next = 1 - next
			copy(local, src[next])
			if i.Shared() {
				return nil
			}
			return m.Flush(s.ctx)
		}, nil
	}
}

// writes is the same by a socket: the receiver reads.
func writes(over string, size int) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		c, server, err := s.sockets(over)
		if err != nil {
			return nil, err
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for b := make([]byte, size); ; {
				if _, err := io.ReadFull(server, b); err != nil {
					return
				}
			}
		}()
		s.later(func() { c.Close(); <-done })
		src := make([]byte, size)
		return func() error {
			_, err := c.Write(src)
			return err
		}, nil
	}
}

// flushedBytes are those of the mapping of flushes.
const flushedBytes = 16 << 20 // 16 MiB

// flushes is rounds of automatic update over a connection, with some pages written to before each.
func flushes(over string, dirty int) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		n, err := s.nodes(over)
		if err != nil {
			return nil, err
		}
		_, _, i, err := s.importOf(n, over, flushedBytes, vmmc.ExportOptions{})
		if err != nil {
			return nil, err
		}
		local, err := n[0].Alloc(flushedBytes)
		if err != nil {
			return nil, err
		}
		m, err := i.Map(0, local, vmmc.MapOptions{Interval: -1, Copy: true})
		if err != nil {
			return nil, err
		}
		return func() error {
			for p := range dirty {
				local[p*4096]++
			}
			return m.Flush(s.ctx)
		}, nil
	}
}
