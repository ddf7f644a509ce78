#!/bin/sh
# Makes scf.in, the ground state of 64 atoms of silicon that are a little off their places, and by ld1.x the
# pseudopotential that it needs.
set -eu
ld1.x < ld1.in > ld1.out
{
	cat <<-'END'
	&control
	  calculation = 'scf', prefix = 'si', outdir = 'out', pseudo_dir = '.', tprnfor = .true., disk_io = 'none'
	/
	&system
	  ibrav = 1, celldm(1) = 20.52, nat = 64, ntyp = 1, ecutwfc = 12
	/
	&electrons
	  conv_thr = 1e-4
	/
	ATOMIC_SPECIES
	Si 28.086 Si.UPF
	ATOMIC_POSITIONS crystal
	END
	awk 'BEGIN {
		n = split("0 0 0  0 .5 .5  .5 0 .5  .5 .5 0  .25 .25 .25  .25 .75 .75  .75 .25 .75  .75 .75 .25", at, " ")
		for (x = 0; x < 2; x++) for (y = 0; y < 2; y++) for (z = 0; z < 2; z++) for (i = 1; i <= n; i += 3)
			printf "Si %.4f %.4f %.4f\n", (x + at[i]) / 2 + .004 * sin(++k), (y + at[i+1]) / 2, (z + at[i+2]) / 2
	}'
	echo "K_POINTS gamma"
} > scf.in
