package main

// #include "changes.h"
import "C"

// patcherSetting has Open MPI over UCX patch libc in any process that initialises it.
const patcherSetting = "OMPI_MCA_opal_common_ucx_opal_mem_hooks=1"

func startMPI() error { return errnoOf(C.mpi_start()) }
func endMPI()         { C.mpi_end() }
