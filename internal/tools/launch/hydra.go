package launch

import (
	"regexp"
	"slices"
	"strings"
)

// hydra is mpiexec of MPICH and Intel MPI.
var hydra = launcher{
	name: "Hydra", mpi: mpich,
	bases:   []string{"mpiexec.hydra", "mpirun.hydra", "mpiexec.mpich", "mpirun.mpich", "hydra"},
	version: regexp.MustCompile(`HYDRA|Intel\(R\) MPI`),
	values:  hydraValues, pass: passHydra,
}

// hydraValues are those of mpiexec.hydra -help of MPICH 4 and Intel MPI 2021.
var hydraValues = arity(`n np f hostfile machinefile machine hosts host ppn perhost rr grr wdir topolib path configfile genvlist envlist bind-to
	map-by membind rmk launcher launcher-exec bootstrap bootstrap-exec iface info-dir demux order-nodes localhost
	usize pmi-port nameserver ckpointlib ckpoint-prefix ckpoint-num ckpoint-interval prepend-pattern outfile-pattern
	errfile-pattern profile-format enable-x disable-x gpus-per-proc memory-alloc-kind timeout umask s tune
	tv-debugger gtool gtoolfile trace t branch-count arch print-rank-map binding bootstrap-exec-args hostos soft file`,
	`genv env`)

// passHydra adds "-genv NAME value", which goes for all programs of a job. The
// environment reaches the ranks by itself, but for LD_PRELOAD and unless
// there is an option against it.
func passHydra(segments []segment, library string, environ []string, vars []variable) ([]segment, error) {
	inherited, _ := Getenv(environ, preloadVar)
	out := slices.Clone(segments)
	given := map[string]bool{} // for all programs
	for i, s := range segments {
		options := slices.Clone(s.options)
		for j := 0; j+2 < len(options); j++ {
			option := strings.TrimLeft(options[j], "-")
			if option != "genv" && option != "env" || options[j][0] != '-' {
				continue
			}
			if options[j+1] == preloadVar {
				options[j+2] = withLibrary(options[j+2], library)
			}
			given[options[j+1]] = given[options[j+1]] || option == "genv"
			j += 2
		}
		out[i].options = options
	}
	var added []string
	if !given[preloadVar] {
		added = append(added, "-genv", preloadVar, withLibrary(inherited, library))
	}
	for _, v := range vars {
		if !given[v.name] {
			added = append(added, "-genv", v.name, v.value)
		}
	}
	out[0].options = append(added, out[0].options...)
	return out, nil
}
