package main

import "pinwheel/internal/manpage"

type manCmd struct{}

func (manCmd) Help() string { return "Examples:\n  pinwheel man | man -l -" }

func (manCmd) Run(e *env) error {
	return manpage.Write(e.stdout, newParser().Model, manpage.Page{
		ExitStatus: exitStatus,
		Files:      [][2]string{{"libpinwheel.so, libpinwheel-go.so", "What is preloaded, beside this command or in ../lib of its directory."}},
		SeeAlso:    []string{"nasreplay --help", "mpirun(1)", "srun(1)", "ld.so(8)", "ibv_reg_mr(3)", "fi_mr(3)"},
	})
}

var exitStatus = [][2]string{
	{"0", "All went well."},
	{"1", "Something failed; for doctor, something that is needed is missing."},
	{"2", "Wrong arguments."},
	{"126, 127", "The program could not be started, or was not found."},
	{"other", "For run and record, the status of the program; it ends by the signal that ended the program."},
}
