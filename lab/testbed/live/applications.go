package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pinwheel/lab/testbed/live/stack"
)

// application is a program of Debian's. Its inputs are in lab/testbed/apps, in the directory with its name, where
// prepare.sh makes what else it needs.
type application struct {
	name     string
	program  []string // relative to the directory, or absolute
	needs    []string // files of Debian's packages
	packages string   // which these are
	environ  []string
	// result finds the lines of its output that tell what it has computed. Everything in them is the same in each run:
	// all five add up in an order that the number of ranks sets.
	result *regexp.Regexp
	files  []string // patterns of files with results
}

// oneThread keeps libraries of linear algebra from starting threads that would compete with the other rank.
const oneThread = "OMP_NUM_THREADS=1"

var applications = []application{
	{
		name: "fftw", program: []string{"transform", "20"},
		needs: []string{"/usr/include/fftw3-mpi.h"}, packages: "libfftw3-mpi-dev",
		result: regexp.MustCompile(`^transform \d+: .*`),
	},
	{
		name: "gromacs",
		program: strings.Fields("/usr/bin/gmx_mpi -quiet mdrun -s topol.tpr -ntomp 1 -npme 0 -nb cpu -pin off " +
			"-reprod -notunepme -dlb no"),
		needs: []string{"/usr/bin/gmx_mpi", "/usr/share/gromacs/top/spc216.gro"}, packages: "gromacs",
		files: []string{"confout.gro"}, // places and velocities of all atoms
	},
	{
		name: "openfoam", program: []string{"/usr/bin/icoFoam", "-parallel"},
		needs: []string{"/usr/bin/icoFoam", "/usr/share/openfoam/etc/controlDict"}, packages: "openfoam",
		environ: []string{"WM_PROJECT_DIR=/usr/share/openfoam"},
		result:  regexp.MustCompile(`^(Time =|Courant|smoothSolver:|DICPCG:|time step continuity).*`),
		files:   []string{"processor*/0.004/[Up]"},
	},
	{
		// Two Newton steps. PETSc's handlers of signals are installed, as they are by default.
		name: "petsc",
		program: strings.Fields("ex19 -da_grid_x 5 -da_grid_y 16385 -da_processors_x 2 -da_processors_y 1 " +
			"-lidvelocity 10 -grashof 100 -snes_monitor -ksp_monitor -snes_max_it 2 -ksp_max_it 30 " +
			"-snes_max_linear_solve_fail 2"),
		needs: []string{"/usr/share/petsc/*/share/petsc/examples/src/snes/tutorials/ex19.c",
			"/usr/lib/*/pkgconfig/PETSc.pc"},
		packages: "petsc-dev libpetsc3.18-dev-examples",
		result:   regexp.MustCompile(`^(lid velocity|\s*\d+ (SNES|KSP)|Number of SNES).*`),
	},
	{
		name: "qe", program: []string{"/usr/bin/pw.x", "-in", "scf.in"},
		needs: []string{"/usr/bin/pw.x", "/usr/bin/ld1.x"}, packages: "quantum-espresso",
		result: regexp.MustCompile(`^(!?\s+(total energy|estimated scf accuracy)|\s+(atom +\d+ type|Total force)).*`),
	},
}

// missing says in one line why the application can't run, "" if it can.
func (a application) missing() string {
	for _, pattern := range a.needs {
		if found, _ := filepath.Glob(pattern); len(found) == 0 { // the pattern is good
			return fmt.Sprintf("there is no %s (apt-get install %s, or make install-apps)", pattern, a.packages)
		}
	}
	return ""
}

// job runs the application in a directory.
func (a application) job(s stack.Stack, d stack.Device, dir string) stack.Job {
	program := slices.Clone(a.program)
	if !filepath.IsAbs(program[0]) {
		program[0] = filepath.Join(dir, program[0])
	}
	return stack.Job{
		Stack: s, Device: d, Ranks: appRanks, Program: program,
		Environ: append([]string{oneThread, fmt.Sprint("FI_UNIVERSE_SIZE=", appRanks)}, a.environ...),
	}
}

// results returns what a run has computed, a line for each thing.
func (a application) results(output, dir string) (lines []string, err error) {
	if a.result != nil {
		for line := range strings.Lines(output) {
			if line = strings.TrimRight(line, "\n"); a.result.MatchString(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			return nil, fmt.Errorf("no line of its output is a result")
		}
	}
	for _, pattern := range a.files {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is good
		if len(found) == 0 {
			return nil, fmt.Errorf("it wrote no %s", pattern)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			lines = append(lines, strings.Split(string(text), "\n")...)
		}
	}
	return lines, nil
}

// firstDifference says where two results differ, "" if they don't.
func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("it lacks %q", want[i])
		case i >= len(want):
			return fmt.Sprintf("it has also %q", got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("result %d is %q, not %q", i+1, got[i], want[i])
		}
	}
	return ""
}
