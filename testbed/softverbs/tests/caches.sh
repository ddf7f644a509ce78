#!/bin/bash
# caches.sh DEVICE BIN: does Pinwheel notice whether the transport's registration cache is really off? 2 ranks of
# Open MPI and of MPICH over UCX on the software device, under "pinwheel run" of BIN. A setting that leaves the cache
# on must give one warning and a line in the report; the settings that "pinwheel run" chooses must give neither.
set -uo pipefail
device=$(cd "$1" && pwd)
bin=$(cd "$2" && pwd)
programs=$(cd "$(dirname "$0")/../../../mpishim/testing/programs" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softverbs-caches.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

. "$(dirname "$0")/mpi.env"

# launch MPI REPORT VARIABLE=VALUE...: a job of 24 exchanges
launch() {
	local mpi=$1 report=$2 give=() name value
	shift 2
	for entry in LD_LIBRARY_PATH="$device/lib" LD_PRELOAD="$device/lib/softverbs-preload.so" "$@"; do
		name=${entry%%=*} value=${entry#*=}
		if [ "$mpi" = openmpi ]; then give+=(-x "$entry"); else give+=(-genv "$name" "$value"); fi
	done
	env "$@" timeout -k 5 100 "$bin/pinwheel" run --report="$report" -- "mpirun.$mpi" -n 2 "${give[@]}" "$scratch/halo.$mpi" 24 2>&1 </dev/null
}

failed=0
# judge WHAT WANTED OUTPUT REPORT: WANTED is how many warnings there must be
judge() {
	local warned said
	warned=$(grep -c "UCX's cache is on, with .*; set UCX_IB_REG_METHODS=direct" <<<"$3")
	said=$(grep -c "Nothing was released: UCX's cache is on" "$4")
	if [[ $3 == *"data right"* ]] && [ "$warned" = "$2" ] && [ "$said" = "$2" ]; then
		echo "ok    $1: $warned warnings"
	else
		echo "FAIL  $1: $warned warnings and $said lines in the report, want $2"
		echo "$3" | tail -20
		cat "$4"
		failed=1
	fi
}

for mpi in openmpi mpich; do
	command -v "mpirun.$mpi" >/dev/null && command -v "mpicc.$mpi" >/dev/null && ls /usr/lib/*/ucx/libuct_ib.so.0 >/dev/null 2>&1 || {
		echo "skip  $mpi over UCX: not installed (apt-get install lib$mpi-dev libucx0)"
		continue
	}
	"mpicc.$mpi" -O2 -w -o "$scratch/halo.$mpi" "$programs/halo.c" || exit 1
	out=$(launch "$mpi" "$scratch/right")
	judge "$mpi over UCX, cache off" 0 "$out" "$scratch/right"
	out=$(launch "$mpi" "$scratch/wrong" UCX_IB_REG_METHODS=rcache,direct)
	judge "$mpi over UCX, cache left on" 1 "$out" "$scratch/wrong"
done
exit $failed
