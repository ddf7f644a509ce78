# Sourced by the scripts here: a job of two ranks on the software RDMA device, as a user without privileges.

fail() { echo "$0: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "needs root, to become another user"

# Before a command, or variables and a command: runs it as nobody, who may pin as much as an RDMA job needs.
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all,+ipc_lock --inh-caps=-all,+ipc_lock
	--ambient-caps=+ipc_lock env HOME=/nonexistent)

# on_device DIRECTORY: sets what has Open MPI send over the software device that is there, as its README says, and over nothing else.
on_device() {
	export LD_LIBRARY_PATH=$1/lib SYSFS_PATH=$1/sys
	export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=sv0:1
	export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=^openib,vader,tcp,uct OMPI_MCA_opal_common_ucx_tls=any \
		OMPI_MCA_opal_common_ucx_devices=any OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
		OMPI_MCA_hwloc_base_binding_policy=none
	# UCX opens devices that have a character device only; this library says that there is one, to the ranks.
	preload_of_device=$1/lib/softverbs-preload.so
}

# judge DIRECTORY: its report of each rank says that memory was registered through Pinwheel.
judge() {
	local rank
	for rank in 0 1; do
		[ -s "$1/stats.$rank.json" ] || fail "rank $rank has written no report: it did not run under Pinwheel"
		jq -e '.uses > 0' "$1/stats.$rank.json" >/dev/null || fail "rank $rank used no memory through Pinwheel: $(cat "$1/stats.$rank.json")"
	done
}
