#!/bin/bash
# mpi.sh DEVICE [PROGRAM...]: programs of mpishim/testing, unmodified, on the software device: 2 ranks of Open MPI and
# of MPICH over UCX. Each must end well, say that its data is right, and have moved large buffers by RDMA in every rank.
set -uo pipefail
device=$(cd "$1" && pwd)
shift
programs=$(cd "$(dirname "$0")/../../../mpishim/testing/programs" && pwd)
[ $# -gt 0 ] || set -- halo persistent onesided collectives ring_f08
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softverbs-mpi.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

. "$(dirname "$0")/mpi.env"

# launch MPI STATS PROGRAM: the device only for the ranks, not for mpirun
launch() {
	local for_ranks=(env SOFTVERBS_STATS="$2" LD_LIBRARY_PATH="$device/lib" LD_PRELOAD="$device/lib/softverbs-preload.so")
	timeout -k 5 100 "mpirun.$1" -n 2 "${for_ranks[@]}" "$3" 2>&1 </dev/null
}

compile() { # MPI PROGRAM OUTPUT
	if [ -e "$programs/$2.c" ]; then
		"mpicc.$1" -O2 -w -o "$3" "$programs/$2.c"
	else
		"mpifort.$1" -O2 -w -J "$scratch" -o "$3" "$programs/$2.f90"
	fi
}

failed=0
for mpi in openmpi mpich; do
	command -v "mpirun.$mpi" >/dev/null && command -v "mpicc.$mpi" >/dev/null && ls /usr/lib/*/ucx/libuct_ib.so.0 >/dev/null 2>&1 || {
		echo "skip  $mpi over UCX: not installed (apt-get install lib$mpi-dev libucx0)"
		continue
	}
	for name; do
		stats=$scratch/$name.$mpi.stats start=$SECONDS
		compile "$mpi" "$name" "$scratch/$name.$mpi" || { failed=1; continue; }
		out=$(launch "$mpi" "$stats" "$scratch/$name.$mpi")
		status=$?
		ranks=$(awk '$10 > 0 { n++ } END { print n + 0 }' "$stats" 2>/dev/null)
		bytes=$(awk '{ b += $12 } END { printf "%d", b / 1048576 }' "$stats" 2>/dev/null)
		if [ $status = 0 ] && [[ $out == *"data right"* ]] && [ "${ranks:-0}" = 2 ]; then
			echo "ok    $mpi over UCX: $name  $((SECONDS - start)) s, $bytes MiB by RDMA"
		else
			echo "FAIL  $mpi over UCX: $name  status $status, ${ranks:-0} of 2 ranks moved large buffers over the device"
			echo "$out" | tail -20
			failed=1
		fi
	done
done
exit $failed
