#!/bin/sh
# Makes topol.tpr: a box of 6 nm with 7,029 molecules of water.
set -eu
gmx_mpi -quiet solvate -cs spc216.gro -box 6 6 6 -o conf.gro -p topol.top
gmx_mpi -quiet grompp -f water.mdp -c conf.gro -p topol.top -o topol.tpr
