#!/bin/bash
# Fetch what the guests need from Debian packages into a cache, without root
# and without installing anything: see README.md.
#
#   testbed/fetch.sh          prints the cache directory
#
# PINWHEEL_TESTBED_KERNEL=SUITE takes the kernel from another suite of Debian, such as trixie-backports, and
# keeps it in a cache of its own: the kernel of this host's backports lacks what is newer.
#
# The cache holds
#   debs/         the packages, so that a second fetch downloads nothing
#   layer/        the packages unpacked: laid over the host's root in the guest,
#                 and the source of QEMU and <infiniband/verbs.h> on the host
#   layer/boot/   the kernel
#   initrd.img    the initial RAM disk, made from initrd/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

# These are downloaded, with those of their dependencies that the host lacks.
packages=(
  busybox-static kmod iproute2           # boot, modules, rdma link
  qemu-system-x86                        # the machine
  libibverbs-dev ibverbs-providers ibverbs-utils # libibverbs, its rxe driver, its header, ibv_devinfo
)

. /etc/os-release
[ "${ID:-}" = debian ] || fail "the test bed lays Debian packages over the host's root, and this host is '${ID:-unknown}': run it in a Debian container"
codename=$VERSION_CODENAME
kernel_from=${PINWHEEL_TESTBED_KERNEL:-$codename-backports}
stamp=$(sha256sum "$here/fetch.sh" "$here/common.sh" "$here/init" | sha256sum | cut -c1-16)-$codename-$kernel_from
if [ "$(cat "$cache/stamp" 2>/dev/null)" = "$stamp" ]; then
  echo "$cache"
  exit
fi
mkdir -p "$cache"
exec 9> "$cache/lock"
flock 9 # waits for guests that use what is there

# A private apt: own lists and archives, so that neither root nor a recent
# "apt-get update" of the host is needed. The host's package status is used
# to leave out what it already has. Backports bring to a Debian 12 host a kernel
# with mseal (6.10) and PAGEMAP_SCAN (6.7), and a QEMU in which guests with two
# processors don't crash now and then ("int3: 0000" while the kernel patches
# itself: seen with 7.2, https://bugzilla.redhat.com/show_bug.cgi?id=2216496).
mkdir -p "$cache"/apt/{lists/partial,apt.conf.d} "$cache"/debs/partial
cat > "$cache/apt/sources.list" <<S
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $codename main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $codename-backports main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian-security $codename-security main
S
[ "$kernel_from" = "$codename-backports" ] || # of all suites, apt prefers the host's
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $kernel_from main" >> "$cache/apt/sources.list"
cat > "$cache/apt/apt.conf" <<S
Dir::Etc::sourcelist "$cache/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$cache/apt/lists";
Dir::Cache "$cache/apt";
Dir::Cache::archives "$cache/debs";
Debug::NoLocking "1";
APT::Install-Recommends "0";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::Etc::main "$cache/apt/none";
Dir::Etc::parts "$cache/apt/apt.conf.d";
S
apt-config dump Acquire::http Acquire::https >> "$cache/apt/apt.conf" # the host's proxies, but none of its hooks
export APT_CONFIG=$cache/apt/apt.conf

log "fetching Debian packages into $cache"
apt-get -qq update >&2
apt-get -qq -y -t "$codename-backports" --download-only --reinstall install "${packages[@]}" >&2
# Debian 13 has the kernel and its modules in packages of their own, on which linux-image-VERSION depends.
depends() { apt-cache show -t "$kernel_from" "$1" | awk -F ': ' '/^Depends:/ && !d {d = $2} END {print d}' | grep -oE "$2" || true; }
kernel=$(depends linux-image-amd64 'linux-image-[0-9][^ ,]*' | head -n 1)
[ -n "$kernel" ] || fail "no linux-image-amd64 in $kernel_from"
kernels=("$kernel")
while read -r name; do kernels+=("$name"); done < <(depends "$kernel" 'linux-(base|binary|modules)-[0-9][^ ,]*')
apt-get -qq autoclean >&2
find "$cache/debs" -regex '.*/linux-\(image\|base\|binary\|modules\)-[0-9].*' ! -name "*-${kernel#linux-image-}_*" -delete
for name in "${kernels[@]}"; do
  [ -n "$(find "$cache/debs" -name "${name}_*.deb")" ] || (cd "$cache/debs" && apt-get -qq -t "$kernel_from" download "$name" >&2)
done

# kmod_as NAME ARG...: the package links NAME to /bin/kmod, which the host may lack.
kmod_as() { in_layer bash -c 'exec -a "$0" kmod "$@"' "$@"; }

# Unpacked over links as a merged /usr has them: a plain directory lib/ would
# hide the host's whole /lib under the overlay.
log "unpacking"
rm -rf "$cache/layer" "$cache/initrd"
mkdir -p "$cache"/layer/usr/{bin,sbin,lib,lib64} "$cache/layer/boot"
for d in bin sbin lib lib64; do ln -s "usr/$d" "$cache/layer/$d"; done
for deb in "$cache"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$cache/layer"
done
kv=${kernel#linux-image-}
[ -e "$cache/layer/boot/vmlinuz-$kv" ] || cp "$cache/layer/usr/lib/modules/$kv/vmlinuz" "$cache/layer/boot/vmlinuz-$kv"
kmod_as depmod -b "$cache/layer" "$kv"

# The RAM disk mounts the host's root and no more: later modules come from there.
mkdir -p "$cache"/initrd/{bin,modules,proc,sys,dev,host,layer,scratch,root}
cp "$cache/layer/bin/busybox" "$cache/initrd/bin/busybox"
for m in virtio_pci 9pnet_virtio 9p overlay; do
  kmod_as modprobe -d "$cache/layer" -S "$kv" --show-depends "$m" | awk '/^insmod/ {print $2}'
done | awk '!seen[$0]++' | while read -r file; do
  name=$(basename "${file%.xz}")
  case $file in *.xz) xz -dc "$file" > "$cache/initrd/modules/$name" ;; *) cp "$file" "$cache/initrd/modules/$name" ;; esac
  echo "$name" >> "$cache/initrd/modules/order"
done

install -m 755 "$here/init" "$cache/initrd/init"
(cd "$cache/initrd" && find . | "$cache/layer/bin/busybox" cpio -o -H newc 2> /dev/null | gzip -1) > "$cache/initrd.img"

rm -rf "$cache/apt"
echo "$stamp" > "$cache/stamp"
log "$(du -sh "$cache" | cut -f1) in $cache, kernel $kv"
echo "$cache"
