package launch

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// openMPIRun is mpirun of Open MPI, before version 5 ORTE, then PRRTE.
var openMPIRun = launcher{
	name: "Open MPI", mpi: openMPI,
	bases:   []string{"orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"},
	version: regexp.MustCompile(`Open MPI|OpenRTE|PRRTE|prterun`),
	values:  openMPIValues, pass: passOpenMPI,
}

// openMPIValues are those of mpirun(1) of Open MPI 1.10 to 5.0.
var openMPIValues = arity(`N max-vm-size H host hostfile default-hostfile machinefile cpu-set cpu-list c n np npersocket npernode map-by
	rank-by bind-to cpus-per-proc cpus-per-rank rf rankfile output-filename output stdin xml-file xterm path prefix preload-files
	wd wdir x am tune debugger timeout app cf cartofile max-restarts ompi-server personality ppr server-wait-time
	report-pid report-uri tmpdir hnp runtime-options display pmixmca-params report-events rsh-agent`,
	`mca gmca omca pmixmca prtemca`)

var errEnvList = errors.New("mpirun allows -x or mca_base_env_list, not both: give the variables of the latter with -x")

// passOpenMPI adds "-x NAME" for each variable, which mpirun takes from its own
// environment, and "-x LD_PRELOAD=value", which it does not have there. -x is an
// option of one program of a job, so that every one gets it.
// OMPI_MCA_ variables reach the ranks without it.
func passOpenMPI(segments []segment, library string, environ []string, vars []variable) ([]segment, error) {
	if _, set := Getenv(environ, "OMPI_MCA_mca_base_env_list"); set {
		return nil, errEnvList
	}
	inherited, _ := Getenv(environ, preloadVar)
	out := slices.Clone(segments)
	for i, s := range segments {
		if slices.Contains(s.options, "mca_base_env_list") {
			return nil, errEnvList
		}
		given := map[string]bool{}
		options := slices.Clone(s.options)
		for j := 0; j+1 < len(options); j++ {
			if strings.TrimLeft(options[j], "-") != "x" || options[j][0] != '-' {
				continue
			}
			j++
			name, value, hasValue := strings.Cut(options[j], "=")
			given[name] = true
			if name == preloadVar {
				if !hasValue {
					value = inherited
				}
				options[j] = preloadVar + "=" + withLibrary(value, library)
			}
		}
		var added []string
		if !given[preloadVar] {
			added = append(added, "-x", preloadVar+"="+withLibrary(inherited, library))
		}
		for _, v := range vars {
			if !given[v.name] && !strings.HasPrefix(v.name, "OMPI_MCA_") {
				added = append(added, "-x", v.name)
			}
		}
		out[i].options = append(added, options...)
	}
	return out, nil
}
