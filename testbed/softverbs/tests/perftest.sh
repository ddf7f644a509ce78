#!/bin/bash
# perftest.sh DEVICE: ucx_perftest and the programs of perftest, unmodified, between two processes on the software device.
# For their errors, not for their figures.
set -uo pipefail
device=$(cd "$1" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softverbs-perftest.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=sv0:1 SYSFS_PATH=$device/sys
port=$((20000 + $$ % 20000))
failed=0

on_device() {
	LD_LIBRARY_PATH=$device/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} LD_PRELOAD=$device/lib/softverbs-preload.so timeout 60 "$@" </dev/null
}

# pair EXPECTED COMMAND...: a server, and a client whose output must have the expected line
pair() {
	local expected=$1 status=1
	shift
	command -v "$1" >/dev/null || { echo "skip  perftest: $1 is not installed (apt-get install ucx-utils perftest)"; return; }
	port=$((port + 1))
	on_device "$@" -p $port >"$scratch/server" 2>&1 &
	for _ in $(seq 50); do # until the server listens
		ss -Hltn "sport = :$port" | grep -q . && break
		sleep 0.1
	done
	on_device "$@" -p $port localhost >"$scratch/client" 2>&1 && grep -Eq "$expected" "$scratch/client" && status=0
	wait $! || status=1
	if [ $status = 0 ]; then
		echo "ok    perftest: $*"
	else
		echo "FAIL  perftest: $*"
		tail -n 20 "$scratch/client"
		tail -n 20 "$scratch/server"
		failed=1
	fi
}

for test in tag_lat ucp_am_lat; do pair '^Final:' ucx_perftest -t $test -s 8 -n 500; done
for test in tag_bw ucp_put_bw ucp_get; do pair '^Final:' ucx_perftest -t $test -s 1048576 -n 100; done
for test in ucp_fadd ucp_cswap; do pair '^Final:' ucx_perftest -t $test -n 100; done
for program in ib_write_bw ib_read_bw ib_write_lat ib_read_lat; do pair '^ *65536 +[0-9]' $program -d sv0 -s 65536 -n 500; done
pair '^ *8 +[0-9]' ib_atomic_bw -d sv0 -n 500
exit $failed
