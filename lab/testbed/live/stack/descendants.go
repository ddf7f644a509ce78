package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Descendants returns the processes below one, zombies included, parents first. A process
// whose parent has ended counts only if the parent was below a process that
// adopts orphans (PR_SET_CHILD_SUBREAPER, prctl(2)), and then as its child.
func Descendants(pid int) (below []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// proc_pid_stat(5): pid (comm) state ppid; comm may have parentheses of its own.
		var child, parent int
		var state byte
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if _, err := fmt.Sscanf(rest, " %c %d", &state, &parent); err != nil {
			continue
		}
		if _, err := fmt.Sscanf(string(text), "%d", &child); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	below = children[pid]
	for i := 0; i < len(below); i++ {
		below = append(below, children[below[i]]...)
	}
	return below
}
