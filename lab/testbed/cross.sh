#!/bin/bash
# Run a command that compiles for arm64, or, with -e, one that also runs what it has compiled, by QEMU's emulation of a
# processor for single programs.
#
#   lab/testbed/cross.sh go build ./...
#   lab/testbed/cross.sh -e go test ./regcache
#
# Of -e: system calls are this kernel's, but QEMU's emulation knows not all of them. The kernel is told to run arm64
# programs by it in a user namespace of this command (binfmt_misc, Linux 6.7), so nothing on this machine changes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PINWHEEL_TESTBED_ARCH=arm64
. "$here/common.sh"

emulate=""
if [ "${1:-}" = -e ]; then emulate=y; shift; fi
[ $# -gt 0 ] || fail "usage: cross.sh [-e] COMMAND [ARG...]"

"$here/fetch.sh" > /dev/null
exec 9> "$cache/lock"
flock -s 9 # no fetch takes the compiler away while the command uses it
export GOARCH=arm64 CGO_ENABLED=1 CC=$here/cross-cc.sh
[ -n "$emulate" ] || exec "$@"

# The first bytes of a 64-bit ELF file for AArch64, and which of their bits count. F: the program is opened now, so that it
# is found from any root.
export QEMU_LD_PREFIX=$tools/usr/aarch64-linux-gnu
elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
# Without privileges, which count for nothing in a namespace, though some tests take those of uid 0 for the host's.
exec unshare --user --map-root-user --mount bash -c '
  at=/proc/sys/fs/binfmt_misc
  mount -t binfmt_misc binfmt_misc $at && echo "$1" > $at/register || {
    echo "testbed: this kernel has no binfmt_misc for user namespaces (Linux 6.7, CONFIG_BINFMT_MISC)" >&2
    exit 125
  }
  shift
  exec unshare --user --map-user=1000 --map-group=1000 "$@"' bash ":pinwheel-arm64:M:0:$elf:$mask:$tools/usr/bin/qemu-aarch64:F" "$@"
