#!/bin/sh
# Makes the mesh of a cavity with a moving lid, 60^3 cells, in two halves.
set -eu
blockMesh
decomposePar
