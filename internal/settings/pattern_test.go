package settings

import (
	"os"
	"strconv"
	"testing"
)

func TestExpandNamesFilesByRankAndJob(t *testing.T) {
	for _, v := range append(rankVariables, jobVariables...) {
		t.Setenv(v, "")
	}
	pid := strconv.Itoa(os.Getpid())
	host, _ := os.Hostname()
	if got, want := Expand("/tmp/%h.%p.%r.%j.%%.%x.pwt"), "/tmp/"+host+"."+pid+"."+pid+".0.%.%x.pwt"; got != want {
		t.Errorf("outside of a job: %q, want %q", got, want)
	}
	t.Setenv("OMPI_COMM_WORLD_RANK", "3")
	t.Setenv("SLURM_JOB_ID", "17")
	if got := Expand("%j/%r"); got != "17/3" {
		t.Errorf("rank 3 of job 17: %q", got)
	}
	t.Setenv("OMPI_COMM_WORLD_RANK", "../../etc")
	if got := Expand("%r"); got != pid {
		t.Errorf("a rank that would leave the directory: %q, want %q", got, pid)
	}
}
