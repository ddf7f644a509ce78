package engine

import "testing"

func TestAveragePinnedIsWeightedByTime(t *testing.T) {
	p := newPinnedBytes()
	p.beganNs -= 1000_000_000 // nothing was pinned for a second
	p.lastNs = p.beganNs + 1000_000_000
	p.integral = 0
	p.bytes = 4096
	p.lastNs -= 1000_000_000 / 4 // then 4096 bytes for a quarter of it
	if _, mean := p.read(); mean < 900 || mean > 1200 {
		t.Errorf("4096 bytes for a quarter of the time give a mean of %d", mean)
	}
}

func TestPeakStaysWhenMemoryGoes(t *testing.T) {
	p := newPinnedBytes()
	p.change(8192)
	p.change(-8192)
	if peak, mean := p.read(); peak != 8192 || mean >= 8192 {
		t.Errorf("8192 bytes, gone again: peak %d, mean %d", peak, mean)
	}
}
