package testbed

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// standIn runs the command as run.sh does, but here, for each node. Node 1 boots later.
const standIn = `#!/bin/bash
n=1
while [[ ${1:-} == -[a-z] ]]; do case $1 in -n) n=$2 ;; -o) export OUT=$2 ;; esac; shift 2; done
for ((node = 0; node < n; node++)); do (export TESTBED_NODES=$n TESTBED_NODE=$node; sleep 0.$node; "$@") & pids+=($!); done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit $status
`

// gotest runs gotest.sh on machines that are none. It returns what it says, with every number of seconds as N, and its
// directory of logs.
func gotest(t *testing.T, nodes string, groups ...string) (said, out string, err error) {
	t.Helper()
	testwait.Bound(t)
	for _, tool := range []string{"bash", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("run.sh", standIn)
	put("fetch.sh", "#!/bin/sh\n")
	for _, name := range []string{"gotest.sh", "common.sh"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		put(name, string(content))
	}
	args := append([]string{"-n", nodes, "-o", dir}, groups...)
	b, err := testwait.Command(t, filepath.Join(dir, "gotest.sh"), args...).CombinedOutput()
	return regexp.MustCompile(`\d+ s\b`).ReplaceAllString(string(b), "N s"), dir, err
}

func TestGroupThatFailsKeepsNoneFromItsTurn(t *testing.T) {
	said, out, err := gotest(t, "1", "--", "first:", "sh", "-c", "echo why; exit 3",
		"--", "-test.run=ShortDir", "../../internal/testwait", "--", "last:", "echo", "a  b", "$c")
	if want := "why\nFAIL  first  N s\nok    pinwheel-internal-testwait  N s"; !strings.HasPrefix(said, want) ||
		!strings.HasSuffix(said, "ok    last  N s\n") || err == nil {
		t.Errorf("%v, says\n%s", err, said)
	}
	if log, err := os.ReadFile(filepath.Join(out, "last.0.log")); string(log) != "a  b $c\n" {
		t.Errorf("the log of the last has %q, %v", log, err)
	}
}

// What one node leaves behind in a group, the other one sees in the next.
func TestTwoNodesBeginEachGroupTogether(t *testing.T) {
	leave, see := `sleep 0.$TESTBED_NODE; touch $OUT/left.$TESTBED_NODE`, `test -e $OUT/left.0 && test -e $OUT/left.1`
	if said, _, err := gotest(t, "2", "--", "leave:", "sh", "-c", leave, "--", "see:", "sh", "-c", see); err != nil {
		t.Errorf("%v, says\n%s", err, said)
	}
}

func TestNothingToRunIsAnError(t *testing.T) {
	for said, groups := range map[string][]string{"nothing to run": nil, "no packages": {"--", "-test.short"}} {
		if got, _, err := gotest(t, "1", groups...); err == nil || !strings.Contains(got, said) {
			t.Errorf("%q: %v, says %q", groups, err, got)
		}
	}
}
