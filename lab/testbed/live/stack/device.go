package stack

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Device is the absolute path of the directory that "make softverbs" fills.
type Device string

const verbsLibrary = "libibverbs.so.1"

// OpenDevice returns the device in a directory, such as out/softverbs.
func OpenDevice(dir string) (Device, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	d := Device(abs)
	if _, err := os.Stat(filepath.Join(d.libraries(), verbsLibrary)); err != nil {
		return "", fmt.Errorf("there is no software device: %w (make softverbs)", err)
	}
	return d, nil
}

func (d Device) libraries() string { return filepath.Join(string(d), "lib") }

// variables are those that give a rank the device, behind other libraries to preload.
func (d Device) variables(preload ...string) []string {
	preload = append(slices.Clone(preload), filepath.Join(d.libraries(), "softverbs-preload.so"))
	return []string{
		"LD_LIBRARY_PATH=" + d.libraries(),
		"LD_PRELOAD=" + strings.Join(preload, ":"), // the device's: UCX asks for /dev/infiniband/uverbs0
		"SYSFS_PATH=" + filepath.Join(string(d), "sys"),
	}
}

// Use says what a process did on the device. Counts are of its whole life.
type Use struct {
	PID                  int
	Regions, RegionBytes uint64 // registrations
	Requests             uint64 // work requests that it posted
	Large, LargeBytes    uint64 // RDMA of 64 KiB and more, which no transport copies through buffers of its own
}

// ReadUses reads the file of SOFTVERBS_STATS: a line for each process that
// reached its exit, of names and numbers.
func ReadUses(path string) ([]Use, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil // nobody opened the device
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var uses []Use
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		counts := map[string]uint64{}
		words := strings.Fields(lines.Text())
		for i := 0; i+1 < len(words); i += 2 {
			n, err := strconv.ParseUint(words[i+1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
			}
			counts[words[i]] = n
		}
		uses = append(uses, Use{PID: int(counts["pid"]), Regions: counts["regions"], RegionBytes: counts["region_bytes"],
			Requests: counts["requests"], Large: counts["large"], LargeBytes: counts["large_bytes"]})
	}
	return uses, lines.Err()
}
