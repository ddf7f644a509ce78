#!/bin/bash
# Fetch what the guests need from Debian packages into a cache, without root
# and without installing anything: see README.md.
#
#   lab/testbed/fetch.sh          prints the cache directory
#
# PINWHEEL_TESTBED_KERNEL=SUITE takes the kernel from another suite of Debian, such as trixie-backports, and
# keeps it in a cache of its own: the kernel of this host's backports lacks what is newer.
#
# PINWHEEL_TESTBED_ARCH=arm64 fetches what guests of that architecture need, and cross.sh, into a cache of its own.
#
# The cache holds
#   debs/         the packages, so that a second fetch downloads nothing
#   layer/        the packages unpacked: laid over the host's root in the guest,
#                 and the source of QEMU and <infiniband/verbs.h> on the host
#   tools/        QEMU and the compiler, if the guests have another architecture than the host; tools-debs/
#   layer/boot/   the kernel
#   initrd.img    the initial RAM disk, made from initrd/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

# These are downloaded, with those of their dependencies that the host lacks.
guest=(
  busybox-static kmod iproute2           # boot, modules, rdma link
  libibverbs-dev ibverbs-providers ibverbs-utils # libibverbs, its rxe driver, its header, ibv_devinfo
)
host=()
case $arch in
  amd64) guest+=(qemu-system-x86) ;;
  arm64)
    # The host's own programs can't run there. What is called by scripts and by tests:
    guest+=(bash coreutils dash findutils grep hostname mount sed util-linux)
    host=(busybox-static kmod qemu-system-arm qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    ;;
esac

. /etc/os-release
[ "${ID:-}" = debian ] || fail "the test bed lays Debian packages over the host's root, and this host is '${ID:-unknown}': run it in a Debian container"
codename=$VERSION_CODENAME
kernel_from=${PINWHEEL_TESTBED_KERNEL:-$codename-backports}
stamp=$(sha256sum "$here/fetch.sh" "$here/common.sh" "$here/init" | sha256sum | cut -c1-16)-$codename-$kernel_from-$arch
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
private_apt() { # private_apt DEBS ARCHITECTURE: what apt does from now on is to download into DEBS
  rm -rf "$cache/apt"
  mkdir -p "$cache"/apt/{lists/partial,apt.conf.d} "$1/partial"
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
Dir::Cache::archives "$1";
Debug::NoLocking "1";
APT::Install-Recommends "0";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::Etc::main "$cache/apt/none";
Dir::Etc::parts "$cache/apt/apt.conf.d";
S
  if [ "$2" != "$(dpkg --print-architecture)" ]; then # of which the host has nothing
    : > "$cache/apt/status"
    cat >> "$cache/apt/apt.conf" <<S
Dir::State::status "$cache/apt/status";
APT::Architecture "$2";
APT::Architectures "$2";
S
  fi
  APT_CONFIG="" apt-config dump Acquire::http Acquire::https >> "$cache/apt/apt.conf" # the host's proxies, but none of its hooks
  export APT_CONFIG=$cache/apt/apt.conf
  apt-get -qq update >&2
}

download() { apt-get -qq -y -t "$codename-backports" --download-only --reinstall install "$@" >&2; }

# unpack DEBS LAYER: over links as a merged /usr has them. A plain directory lib/ would hide the host's whole /lib
# under the overlay.
unpack() {
  local d deb
  rm -rf "$2"
  mkdir -p "$2"/usr/{bin,sbin,lib,lib64}
  for d in bin sbin lib lib64; do ln -s "usr/$d" "$2/$d"; done
  for deb in "$1"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$2"
  done
}

log "fetching Debian packages into $cache"
if [ ${#host[@]} -gt 0 ]; then
  private_apt "$cache/tools-debs" "$(dpkg --print-architecture)"
  download "${host[@]}"
  apt-get -qq autoclean >&2
  unpack "$cache/tools-debs" "$tools"
fi
private_apt "$cache/debs" "$arch"
download "${guest[@]}"
# Debian 13 has the kernel and its modules in packages of their own, on which linux-image-VERSION depends.
depends() { apt-cache show -t "$kernel_from" "$1" | awk -F ': ' '/^Depends:/ && !d {d = $2} END {print d}' | grep -oE "$2" || true; }
kernel=$(depends "linux-image-$arch" 'linux-image-[0-9][^ ,]*' | head -n 1)
[ -n "$kernel" ] || fail "no linux-image-$arch in $kernel_from"
kernels=("$kernel")
while read -r name; do kernels+=("$name"); done < <(depends "$kernel" 'linux-(base|binary|modules)-[0-9][^ ,]*')
apt-get -qq autoclean >&2
find "$cache/debs" -regex '.*/linux-\(image\|base\|binary\|modules\)-[0-9].*' ! -name "*-${kernel#linux-image-}_*" -delete
for name in "${kernels[@]}"; do
  [ -n "$(find "$cache/debs" -name "${name}_*.deb")" ] || (cd "$cache/debs" && apt-get -qq -t "$kernel_from" download "$name" >&2)
done

# kmod_as NAME ARG...: the package links NAME to /bin/kmod, which the host may lack.
kmod_as() { in_layer bash -c 'exec -a "$0" kmod "$@"' "$@"; }

log "unpacking"
rm -rf "$cache/initrd"
unpack "$cache/debs" "$cache/layer"
mkdir -p "$cache/layer/boot"
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
(cd "$cache/initrd" && find . | "$tools/bin/busybox" cpio -o -H newc 2> /dev/null | gzip -1) > "$cache/initrd.img"

rm -rf "$cache/apt"
echo "$stamp" > "$cache/stamp"
log "$(du -sh "$cache" | cut -f1) in $cache, kernel $kv"
echo "$cache"
