package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// AbstractSockets returns the abstract names of Unix sockets in this network namespace that begin with a prefix, without
// that: unix(7). Anyone may have bound them. A listener has as many as connections and one.
func AbstractSockets(prefix string) (names []string, err error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// The name is the eighth field. Abstract names begin with "@".
		if _, name, found := strings.Cut(lines.Text(), " @"+prefix); found {
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("read /proc/net/unix: %w", err)
	}
	return names, nil
}
