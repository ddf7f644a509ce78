package settings

import (
	"os"
	"slices"
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

func TestWorldsOfOneJobHaveNamesOfTheirOwn(t *testing.T) {
	for namespace, want := range map[string]string{
		"1958019074":             "2",  // Open MPI 4: 16 bits of the job, 16 of the world
		"prterun-node1-1234@13":  "13", // Open MPI 5
		"slurm.pmix.77.0":        strconv.Itoa(os.Getppid()),
		"":                       strconv.Itoa(os.Getppid()), // Hydra: one proxy for each on a node
		"prterun-node1-1234@../": strconv.Itoa(os.Getppid()),
	} {
		t.Setenv("PMIX_NAMESPACE", namespace)
		if got := World(); got != want {
			t.Errorf("%q: %q, want %q", namespace, got, want)
		}
	}
}

func TestStepIsThatOfTheLauncher(t *testing.T) {
	for _, c := range []struct {
		environ map[string]string
		want    string
	}{
		{nil, ""},
		{map[string]string{"SLURM_JOB_ID": "77"}, ""}, // a batch script
		{map[string]string{"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}, "77.0"},
		{map[string]string{"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "../0"}, ""},
		{map[string]string{"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "4294967290", "MPI_LOCALNRANKS": "2"}, ""},
		{map[string]string{"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "4294967290", "PMIX_NAMESPACE": "1958019073"},
			"1958019073"},
		{map[string]string{"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "1", "PMIX_NAMESPACE": "slurm.pmix.77.1"},
			"slurm.pmix.77.1"},
	} {
		for _, v := range []string{"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "MPI_LOCALNRANKS"} {
			t.Setenv(v, c.environ[v])
		}
		if got := Step(); got != c.want {
			t.Errorf("%v: %q, want %q", c.environ, got, c.want)
		}
	}
}

// launchedWith makes these all that launchers say of how many ranks there are.
func launchedWith(t *testing.T, environ map[string]string) {
	t.Helper()
	for _, v := range slices.Concat(localRanksVariables, sizeVariables,
		[]string{"SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"}) {
		t.Setenv(v, environ[v])
	}
}

func TestLaunchersTellHowManyRanksShareTheNode(t *testing.T) {
	for _, c := range []struct {
		environ map[string]string
		want    int64
	}{
		{nil, 1},
		{map[string]string{"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_SIZE": "8"}, 4},
		{map[string]string{"MPI_LOCALNRANKS": "2", "PMI_SIZE": "6"}, 2},
		{map[string]string{"PMI_LOCAL_SIZE": "3", "PMI_SIZE": "6"}, 3},
		{map[string]string{"PALS_LOCAL_SIZE": "128", "PMI_SIZE": "20000"}, 128},
		{map[string]string{"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "0", "SLURM_NTASKS": "11"}, 4},
		{map[string]string{"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "1", "SLURM_NTASKS": "11"}, 4},
		{map[string]string{"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "2", "SLURM_NTASKS": "11"}, 3},
		{map[string]string{"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "3", "SLURM_NTASKS": "11"}, 11},
		{map[string]string{"SLURM_STEP_TASKS_PER_NODE": "4(xtwo)", "SLURM_NODEID": "0", "PMI_SIZE": "5"}, 5},
		{map[string]string{"PMI_SIZE": "-3"}, 1},
		{map[string]string{"OMPI_COMM_WORLD_LOCAL_SIZE": "zero"}, 1},
	} {
		launchedWith(t, c.environ)
		if got := LocalRanks(); got != c.want {
			t.Errorf("%v: %d, want %d", c.environ, got, c.want)
		}
	}
}
