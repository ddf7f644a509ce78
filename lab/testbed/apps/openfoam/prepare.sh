#!/bin/sh
# Makes the mesh of a cavity with a moving lid, in two halves. Few cells across and many along the cut, so that what they exchange is large.
set -eu
blockMesh
decomposePar
