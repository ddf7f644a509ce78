#!/bin/bash
# mpi.sh DEVICE [PROGRAM...]: programs of mpishim/testing, unmodified, on the software device: 2 ranks of every stack.
# Each must end well, say that its data is right, and have moved large buffers by RDMA in every rank.
set -uo pipefail
device=$(cd "$1" && pwd)
shift
programs=$(cd "$(dirname "$0")/../../../mpishim/testing/programs" && pwd)
[ $# -gt 0 ] || set -- halo persistent onesided collectives ring_f08
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softverbs-mpi.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=sv0:1 # nothing else may carry the data
export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=^openib,vader,tcp,uct
export OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
# Over libfabric more than 16 KiB go by RDMA; the usual 128 KiB are cut into pieces that are copied.
libfabric=(OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi "OMPI_MCA_mtl_ofi_provider_include=verbs;ofi_rxm" OMPI_MCA_osc=pt2pt
	OMPI_MCA_btl=^openib,vader,tcp,uct,ofi FI_OFI_RXM_SAR_LIMIT=16384)

# installed STACK: 0, or a line that says what is not
installed() {
	local mpi=${1%-*} library=ucx/libuct_ib.so.0 package=libucx0
	[[ $1 == *-libfabric ]] && library=libfabric.so.1 package=libfabric1
	command -v "mpirun.$mpi" >/dev/null && command -v "mpicc.$mpi" >/dev/null && compgen -G "/usr/lib/*/$library" >/dev/null && return
	echo "skip  $1: not installed (apt-get install lib$mpi-dev $package)"
	return 1
}

# launch STACK STATS PROGRAM: the device only for the ranks, not for mpirun
launch() {
	local settings=()
	[[ $1 == *-libfabric ]] && settings=("${libfabric[@]}")
	timeout -k 5 100 env "${settings[@]}" "mpirun.${1%-*}" -n 2 env SOFTVERBS_STATS="$2" LD_LIBRARY_PATH="$device/lib" \
		LD_PRELOAD="$device/lib/softverbs-preload.so" "$3" 2>&1 </dev/null
}

compile() { # MPI PROGRAM OUTPUT
	if [ -e "$programs/$2.c" ]; then
		"mpicc.$1" -O2 -w -o "$3" "$programs/$2.c"
	else
		"mpifort.$1" -O2 -w -J "$scratch" -o "$3" "$programs/$2.f90"
	fi
}

failed=0
for stack in openmpi-ucx openmpi-libfabric mpich-ucx; do
	installed $stack || continue
	for name; do
		program=$scratch/$name.${stack%-*} stats=$scratch/$name.$stack.stats start=$SECONDS
		[ -e "$program" ] || compile "${stack%-*}" "$name" "$program" || { failed=1; continue; }
		out=$(launch $stack "$stats" "$program")
		status=$?
		ranks=$(awk '$10 > 0 { n++ } END { print n + 0 }' "$stats" 2>/dev/null)
		bytes=$(awk '{ b += $12 } END { printf "%d", b / 1048576 }' "$stats" 2>/dev/null)
		if [ $status = 0 ] && [[ $out == *"data right"* ]] && [ "${ranks:-0}" = 2 ]; then
			echo "ok    $stack: $name  $((SECONDS - start)) s, $bytes MiB by RDMA"
		else
			echo "FAIL  $stack: $name  status $status, ${ranks:-0} of 2 ranks moved large buffers over the device"
			echo "$out" | tail -20
			failed=1
		fi
	done
done
exit $failed
