#!/bin/sh
set -eu
mpicc.openmpi -O2 -Wall -o transform transform.c -lfftw3_mpi -lfftw3 -lm
