#!/bin/sh
# Compiles ex19 of PETSc's tutorials, a cavity with a moving lid and heat.
set -eu
mpicc.openmpi -O2 -o ex19 /usr/share/petsc/*/share/petsc/examples/src/snes/tutorials/ex19.c $(pkg-config --cflags --libs PETSc) -lm
