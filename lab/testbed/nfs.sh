#!/bin/bash
# Measure what the kernel's NFS server does over RDMA and TCP in a guest, beside pinwheel serve and rcopy, and what
# registration takes there: see results/files/nfs.md.
#
#   lab/testbed/nfs.sh DIR PINWHEEL FILES [FLAG...]
#
# FILES is the program of lab/bench/files. Its command "guest" measures with these flags, into DIR/nfs.jsonl, and goes on
# where an earlier run was interrupted. Nothing is installed on the host: the packages are unpacked in the guest only.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
packages=(nfs-kernel-server nfs-common rdmacm-utils)
mib=32 # of the file

if [ -z "${TESTBED_NODE:-}" ]; then # on the host
  . "$here/common.sh"
  [ -x "${3:-}" ] || fail "usage: nfs.sh DIR PINWHEEL FILES [FLAG...]"
  "$here/fetch.sh" > /dev/null
  nfs=$cache/nfs
  if [ "$(cat "$nfs/stamp" 2> /dev/null)" != "${packages[*]}" ]; then
    rm -rf "$nfs"
    mkdir -p "$nfs/debs/partial" "$nfs/root"
    log "fetching ${packages[*]} into $nfs"
    apt-get -qq -y --download-only --no-install-recommends --reinstall -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
      -o Dir::Cache::archives="$nfs/debs" install "${packages[@]}" >&2 ||
      fail "no packages of the NFS server: apt-get update, and try again"
    for deb in "$nfs"/debs/*.deb; do dpkg-deb -x "$deb" "$nfs/root"; done
    echo "${packages[*]}" > "$nfs/stamp"
  fi
  versions=("qemu $(in_layer qemu-system-x86_64 --version | sed -n '1s/.*version \([^ ]*\).*/\1/p') on $(
    sed -n 's/^model name\s*: //p;T;q' /proc/cpuinfo)")
  for package in nfs-kernel-server rdmacm-utils; do
    versions+=("$(dpkg-deb -W --showformat '${Package} ${Version}' "$nfs/debs/${package}"_*.deb)")
  done
  mkdir -p "$1"
  directory=$1 pinwheel=$(realpath "$2") files=$(realpath "$3")
  shift 3
  flags=("$@")
  for version in "${versions[@]}"; do flags+=(--software "$version"); done
  exec "$here/run.sh" -t 900 -o "$directory" bash "$here/nfs.sh" "$nfs/root" "$pinwheel" "$files" "${flags[@]}"
fi

unpacked=$1 pinwheel=$2 files=$3
shift 3
tar -C "$unpacked" -c . | tar -C / -x --keep-directory-symlink
modprobe -a nfsd rpcrdma nfsv4
served=/run/served mounted=/run/mounted copied=/run/copied
mkdir -p $served $mounted $copied /var/lib/nfs/{rpc_pipefs,v4recovery,sm,sm.bak}
touch /var/lib/nfs/{etab,rmtab}
mount -t tmpfs tmpfs $served
mount -t tmpfs tmpfs $copied
mount -t nfsd nfsd /proc/fs/nfsd
head -c "${mib}M" /dev/urandom > $served/f
echo "$served *(ro,insecure,no_root_squash,no_subtree_check,fsid=0)" > /etc/exports
exportfs -ra
rpc.mountd -N 2 -N 3
rpc.nfsd -N 3 -V 4.2 --rdma=20049 --lease-time 10 --grace-time 10 4
(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > /run/token)
"$pinwheel" serve $served --listen "$TESTBED_ADDR:7400" --token-file /run/token 2> /run/serve.log &
servers=($!)
for _ in $(seq 300); do grep -q ' serves ' /run/serve.log && break; sleep .1; done # pinwheel get does not wait for it
rcopy > /run/rcopy.log 2>&1 &
servers+=($!)
result=0
"$files" guest --runs "$OUT/nfs.jsonl" --bin "$(dirname "$pinwheel")" --file $served/f --mount $mounted --dest $copied/f \
  --token /run/token "$@" || result=$?
kill "${servers[@]}"
exit $result
