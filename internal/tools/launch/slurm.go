package launch

import (
	"errors"
	"slices"
	"strings"
)

// slurm is srun, which starts the ranks of any MPI library.
var slurm = launcher{
	name: "Slurm", bases: []string{"srun"}, values: slurmValues, pass: passSlurm, environFirst: true,
}

// slurmValues are those of srun(1) of Slurm 17.11 to 25.11; a value joined to
// its option by = or to a letter is one argument.
var slurmValues = arity(`A account accel-bind a array acctg-freq B extra-node-info bb bbf b begin c cpus-per-task C
	constraint cluster-constraint M clusters comment container cores-per-socket mcs-label container-id
	core-spec S cpu-bind cpu-freq cpus-per-gpu d dependency deadline delay-boot D chdir distribution m
	epilog e error x exclude export export-file extra F nodefile G gpus gpu-bind gpu-freq gpus-per-node
	gpus-per-socket gpus-per-task gres gres-flags group gid hint i input job-name J jobid bcast-exclude
	cluster context cpu_bind mem_bind msg-timeout pack-group resources segment tasks-per-node treewidth
	tres-bind tres-per-task licenses L mail-type mail-user mem mem-bind mem-per-cpu mem-per-gpu mincpus
	mpi multi-prog-file network nodes N nodelist w ntasks n ntasks-per-core ntasks-per-gpu
	ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output o partition p power prefer
	priority profile prolog qos q r relative reservation signal slurmd-debug sockets-per-node switches
	task-epilog task-prolog thread-spec threads threads-per-core time t time-min tmp tree-width T uid
	wait W wckey het-group`, ``)

var errComma = errors.New("srun separates variables by commas, and the value of LD_PRELOAD has one: " +
	"install libpinwheel.so under another path")

// passSlurm extends --export, or adds one, for every component of the job.
func passSlurm(segments []segment, library string, environ []string, vars []variable) ([]segment, error) {
	out := slices.Clone(segments)
	for i, s := range segments {
		base := "ALL"
		for _, name := range []string{"SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"} { // the second overrides the first
			if list, _ := Getenv(environ, name); list != "" {
				base = list
			}
		}
		options := slices.Clone(s.options)
		at, n := 0, 0 // where --export is, and how many arguments long
		for j, o := range options {
			if v, ok := strings.CutPrefix(o, "--export="); ok {
				base, at, n = v, j, 1
			} else if o == "--export" && j+1 < len(options) {
				base, at, n = options[j+1], j, 2
			}
		}
		list, err := slurmExport(base, library, environ, vars)
		if err != nil {
			return nil, err
		}
		out[i].options = slices.Replace(options, at, at+n, "--export="+list)
	}
	return out, nil
}

// slurmExport adds to the list of an --export what the ranks need. srun takes the value of a
// variable that is only named from its own environment. With ALL, it takes all from
// there, even those that the list gives another value.
func slurmExport(list, library string, environ []string, vars []variable) (string, error) {
	inherited, _ := Getenv(environ, preloadVar)
	preload, all := "", false
	var entries []string
	given := map[string]bool{}
	for _, entry := range strings.Split(list, ",") {
		if strings.EqualFold(entry, "NONE") { // what comes after it does not count
			break
		}
		name, value, hasValue := strings.Cut(entry, "=")
		given[name] = true
		switch {
		case name == preloadVar && hasValue:
			preload = value
		case name == preloadVar:
			preload = inherited
		case entry != "":
			all = all || strings.EqualFold(entry, "ALL")
			entries = append(entries, entry)
		}
	}
	if all && inherited != "" {
		preload = inherited
	}
	preload = withLibrary(preload, library)
	if strings.Contains(preload, ",") {
		return "", errComma
	}
	entries = append(entries, preloadVar+"="+preload)
	for _, v := range vars {
		if !given[v.name] {
			entries = append(entries, v.name)
		}
	}
	return strings.Join(entries, ","), nil
}
