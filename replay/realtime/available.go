package realtime

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// AvailableMemory returns the bytes that new mappings can use without
// swapping: MemAvailable of proc_meminfo(5).
func AvailableMemory() (uint64, error) {
	const path, field = "/proc/meminfo", "MemAvailable:"
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			kb, err := strconv.ParseUint(words[1], 10, 54)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no field %s", path, field)
}
