package settings

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestJobsHaveTheNamesOfTheirLaunchers(t *testing.T) {
	for _, c := range []struct{ variable, value, want string }{
		{"SLURM_JOB_ID", "17", "slurm-17"},
		{"PBS_JOBID", "12[3].host.domain", "pbs-12-3-.host.domain"},
		{"LSB_JOBID", strings.Repeat("x", 100), "lsf-4e7b6b1a2b0e6d0d"},
		{"OMPI_MCA_ess_base_jobid", "1958019073", "ompi-29877"},
		{"PMIX_NAMESPACE", "1958019074", "ompi-29877"}, // spawned by the one above
		{"PMIX_NAMESPACE", "prterun-node1-1234@13", "ompi-prterun-node1-1234"},
	} {
		for _, v := range slices.Concat(jobVariables, []string{"PMIX_NAMESPACE", "PMI_RANK", "PMI_ID"}) {
			t.Setenv(v, "")
		}
		alone := Job()
		if kind, _, _ := strings.Cut(alone, "-"); kind != "session" || alone != Job() {
			t.Errorf("without a launcher: %q", alone)
		}
		t.Setenv(c.variable, c.value)
		got := Job()
		if len(got) > maxJob {
			t.Errorf("%q is too long", got)
		}
		if c.variable == "LSB_JOBID" {
			if !strings.HasPrefix(got, "lsf-") {
				t.Errorf("%q", got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s=%s: %q, want %q", c.variable, c.value, got, c.want)
		}
	}
}

func TestRankIsThatOfTheLauncher(t *testing.T) {
	for _, v := range rankVariables {
		t.Setenv(v, "")
	}
	if got := Rank(); got != -1 {
		t.Errorf("without a launcher: %d", got)
	}
	t.Setenv("PMI_RANK", "5")
	if got := Rank(); got != 5 {
		t.Errorf("%d, want 5", got)
	}
	t.Setenv("PMI_RANK", "-5")
	if got := Rank(); got != -1 {
		t.Errorf("%d, want none", got)
	}
}

func TestProxyIsFoundAmongTheAncestorsOfRanksOnly(t *testing.T) {
	t.Setenv("PMI_RANK", "0")
	t.Setenv("PMI_ID", "")
	if pid, found := proxy(os.Getpid()); found {
		t.Skipf("process %d is Hydra's: this test is a rank", pid)
	}
}
