package vmwatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrCrowded is returned by Watch, with ErrNotCacheable, for a range that would have the process come near the number
// of mappings that the kernel permits.
var ErrCrowded = errors.New("the process has too many mappings (vm.max_map_count)")

// crowd keeps the process far from vm.max_map_count, beyond which its own mmap fails. What is armed becomes a mapping
// of its own: up to two more than before for each part of the address space. Those get an eighth of what
// the kernel permits, as long as the process has used no more than half of it.
type crowd struct {
	most  int // vm.max_map_count
	count func() (int, error)
	// unseen is how many parts may be armed until the mappings are counted again, which takes a microsecond for each
	// three of them.
	unseen int
	full   bool // when they were last counted
}

func newCrowd() crowd {
	const usual = 65530
	most := usual
	if text, err := os.ReadFile("/proc/sys/vm/max_map_count"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			most = n
		}
	}
	return crowd{most: most, count: countMappings}
}

// admit decides on one more part of the address space, with which there would be so many.
func (c *crowd) admit(parts int) error {
	if c.unseen--; c.unseen < 0 {
		n, err := c.count()
		if err != nil {
			return err
		}
		c.full, c.unseen = n > c.most/2, c.most/128
	}
	if c.full || 2*parts > c.most/8 {
		return fmt.Errorf("%w: %d are permitted", ErrCrowded, c.most)
	}
	return nil
}

// countMappings returns how many mappings this process has.
func countMappings() (n int, err error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for text := make([]byte, 64<<10); ; {
		got, err := f.Read(text)
		n += bytes.Count(text[:got], []byte{'\n'})
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
