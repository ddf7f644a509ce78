#!/bin/bash
# What the kernel's NFS server does over RDMA and TCP in a guest, beside pinwheel serve: see results/files.
#
#   testbed/nfs.sh PINWHEEL [MIB [ROUNDS]]
#
# Nothing is installed on the host: the packages of the NFS server are unpacked in the guest only. The page cache of the
# client is dropped before each round. Under emulation only counts say much: packets, by the counters of the device.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ -z "${TESTBED_NODE:-}" ]; then # on the host
  . "$here/common.sh"
  [ -x "${1:-}" ] || fail "usage: nfs.sh PINWHEEL [MIB [ROUNDS]]"
  "$here/fetch.sh" > /dev/null
  nfs=$cache/nfs
  if [ ! -e "$nfs/stamp" ]; then
    mkdir -p "$nfs/debs/partial" "$nfs/root"
    log "fetching the NFS server into $nfs"
    apt-get -qq -y --download-only --no-install-recommends -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
      -o Dir::Cache::archives="$nfs/debs" install nfs-kernel-server nfs-common >&2 ||
      fail "no packages of the NFS server: apt-get update, and try again"
    for deb in "$nfs"/debs/*.deb; do dpkg-deb -x "$deb" "$nfs/root"; done
    touch "$nfs/stamp"
  fi
  pinwheel=$(realpath "$1")
  shift
  exec "$here/run.sh" -t 400 bash "$here/nfs.sh" "$nfs/root" "$pinwheel" "$@"
fi

packages=$1 pinwheel=$2 mib=${3:-8} rounds=${4:-5}
tar -C "$packages" -c . | tar -C / -x --keep-directory-symlink
for module in nfsd rpcrdma nfsv4; do
  modprobe $module || { echo "this kernel has no $module: knfsd over RDMA was not measured"; exit 0; }
done
served=/run/served mounted=/run/mounted
mkdir -p $served $mounted /var/lib/nfs/{rpc_pipefs,v4recovery,sm,sm.bak}
touch /var/lib/nfs/{etab,rmtab}
mount -t tmpfs tmpfs $served
mount -t nfsd nfsd /proc/fs/nfsd
head -c "${mib}M" /dev/urandom > $served/f
echo "$served *(ro,insecure,no_root_squash,no_subtree_check,fsid=0)" > /etc/exports
exportfs -ra
rpc.mountd -N 2 -N 3
rpc.nfsd -N 3 -V 4.2 --rdma=20049 --lease-time 10 --grace-time 10 4

counters=/sys/class/infiniband/rxe0/ports/1/hw_counters
count() { cat "$counters/$1" 2> /dev/null || echo 0; }

# row NAME COMMAND...: the command prints the seconds that it took
row() {
  local name=$1 packets times=() round took
  shift
  packets=$(count sent_pkts)
  for ((round = 0; round < rounds; round++)); do
    sync
    echo 3 > /proc/sys/vm/drop_caches
    took=$("$@") || { printf '%-28s failed\n' "$name"; return; }
    times+=("$took")
  done
  packets=$((($(count sent_pkts) - packets) / rounds))
  printf '%s\n' "${times[@]}" | sort -g | awk -v name="$name" -v mib="$mib" -v packets="$packets" '
    {t[NR] = $1}
    END {m = t[int((NR + 1) / 2)]; printf "%-28s %8.2f %8.2f %8.2f %8.1f %10d\n", name, m, t[1], t[NR], mib / m, packets}'
}

by_nfs() {
  local begin end
  mount.nfs4 -o "$1,vers=4.2,ro" "$TESTBED_ADDR:/" $mounted || return
  begin=$(date +%s%N)
  dd if=$mounted/f of=/dev/null bs=1M status=none || return
  end=$(date +%s%N)
  umount $mounted
  awk -v ns=$((end - begin)) 'BEGIN {print ns / 1e9}'
}

# RDMA takes longer to come up than a get waits, when the emulation is slow.
by_pinwheel() { # TRANSPORT
  local try said
  for try in 1 2 3 4 5; do
    if said=$("$pinwheel" get --progress off --json --verify none --transport "$1" "$TESTBED_ADDR:7400/f" /run/got \
      --token-file /run/token --from "tcp:$TESTBED_ADDR:0" 2> /run/get.log); then
      sed -n 's/.*"seconds":\([0-9.e+-]*\).*/\1/p' <<< "$said"
      return
    fi
  done
  cat /run/get.log >&2
  return 1
}

(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > /run/token)
"$pinwheel" serve $served --listen "$TESTBED_ADDR:7400" --token-file /run/token 2> /run/serve.log &
server=$!
sleep 12 # the NFS server gives up waiting for clients of an earlier life

echo "$mib MiB out of the page cache, $rounds rounds, Linux $(uname -r), Soft-RoCE, emulated"
printf '%-28s %8s %8s %8s %8s %10s\n' "" "median s" least most MiB/s "RDMA pkts"
row "knfsd, NFSv4.2 over RDMA" by_nfs rdma,port=20049
row "knfsd, NFSv4.2 over TCP" by_nfs proto=tcp,port=2049
row "pinwheel, RDMA" by_pinwheel rdma
row "pinwheel, TLS" by_pinwheel tcp
kill "$server"
wait "$server" || true
