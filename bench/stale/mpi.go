package main

// #include "changes.h"
import "C"

// patcherSettings make Open MPI patch libc in any process that initialises it.
var patcherSettings = []string{
	"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	"OMPI_MCA_pml=ucx", "OMPI_MCA_opal_common_ucx_opal_mem_hooks=1",
	"OMPI_MCA_pml_ucx_tls=any", "OMPI_MCA_pml_ucx_devices=any",
}

func startMPI() error { return errnoOf(C.mpi_start()) }
func endMPI()         { C.mpi_end() }
