#!/bin/bash
# perftest.sh DEVICE: ucx_perftest, perftest and the tools of rdma-core and libfabric, unmodified, between two processes
# on the software device. For their errors, not for their figures.
set -uo pipefail
command -v ss >/dev/null || { # else nobody sees that a server listens
	echo "perftest.sh: ss is missing: apt-get install iproute2" >&2
	exit 1
}
device=$(cd "$1" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softverbs-perftest.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=sv0:1 SYSFS_PATH=$device/sys
port=$((20000 + $$ % 12000)) # below those that the kernel gives to clients (ip_local_port_range)
failed=0

on_device() { # in a shell of its own
	LD_LIBRARY_PATH=$device/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} LD_PRELOAD=$device/lib/softverbs-preload.so exec timeout 60 "$@" </dev/null
}

says() { grep -Eq "$1" "$scratch/$2"; } # PATTERN SIDE

# pair EXPECTED SERVER CLIENT [HANGS]: two commands; the output of the client must have the expected line. PORT is a
# port. Of two that HANG at their end both outputs must have that line, and then both are killed.
pair() {
	local expected=$1 hangs=${4-} status=1 server client serves uses
	port=$((port + 1))
	server=(${2//PORT/$port}) client=(${3//PORT/$port})
	command -v "${server[0]}" >/dev/null || {
		echo "skip  ${server[0]}: not installed (apt-get install ucx-utils perftest rdmacm-utils libfabric-bin)"
		return
	}
	on_device "${server[@]}" >"$scratch/server" 2>&1 &
	serves=$!
	while kill -0 $serves 2>/dev/null; do # until the server listens, by TCP or by the device's librdmacm
		ss -Hltn "sport = :$port" | grep -q . || grep -q "@softverbs1\..*\.port\.$port\$" /proc/net/unix && break
		sleep 0.1
	done
	on_device "${client[@]}" >"$scratch/client" 2>&1 &
	uses=$!
	if [ -n "$hangs" ]; then
		while kill -0 $uses 2>/dev/null || kill -0 $serves 2>/dev/null; do # on_device ends both after a minute
			says "$expected" client && says "$expected" server && break
			sleep 0.1
		done
		says "$expected" client && says "$expected" server && status=0
		kill $uses $serves 2>/dev/null
		wait $uses $serves
	else
		wait $uses && says "$expected" client && status=0
		wait $serves || status=1
	fi
	if [ $status = 0 ]; then
		echo "ok    ${client[*]}"
	else
		echo "FAIL  ${client[*]}"
		tail -n 20 "$scratch/client"
		tail -n 20 "$scratch/server"
		failed=1
	fi
}
with_host() { pair "$1" "$2 -p PORT" "$2 -p PORT localhost"; }

for test in tag_lat ucp_am_lat; do with_host '^Final:' "ucx_perftest -t $test -s 8 -n 500"; done
for test in tag_bw ucp_put_bw ucp_get; do with_host '^Final:' "ucx_perftest -t $test -s 1048576 -n 100"; done
for test in ucp_fadd ucp_cswap; do with_host '^Final:' "ucx_perftest -t $test -n 100"; done
for program in ib_write_bw ib_read_bw ib_write_lat ib_read_lat; do
	with_host '^ *65536 +[0-9]' "$program -d sv0 -s 65536 -n 500"
done
with_host '^ *8 +[0-9]' "ib_atomic_bw -d sv0 -n 500"
with_host '^ *65536 +[0-9]' "ib_write_bw -R -s 65536 -n 500"
pair 'ping data: rdma-ping-9' "rping -s -a 127.0.0.1 -p PORT -C 10" "rping -c -a 127.0.0.1 -p PORT -C 10 -v"
pair '^return status 0' "ucmatose -p PORT -c 20 -C 50" "ucmatose -p PORT -c 20 -C 50 -s 127.0.0.1"
pair '^rdma_client: end 0' "rdma_server -p PORT" "rdma_client -p PORT -s 127.0.0.1"
address=$(hostname -I | awk '{ print $1 }') # libfabric does not take the loopback interface
for provider in "verbs -e msg" "verbs;ofi_rxm -e rdm"; do
	[ -n "$address" ] || { echo "skip  fi_pingpong: no address but that of the loopback interface"; continue; }
	command="fi_pingpong -p $provider -c -S 1048576 -I 20"
	# rxm forgets completions that it has not read when the other side goes, and the program waits for them
	[ "${provider%;*}" = "$provider" ] && hangs= || hangs=y
	pair '^1m +20 ' "$command -B PORT" "$command -P PORT $address" $hangs
done
exit $failed
