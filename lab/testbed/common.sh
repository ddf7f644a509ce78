# Shared by fetch.sh, run.sh and cross.sh: where the cache lies and how to speak to people.

arch=${PINWHEEL_TESTBED_ARCH:-amd64} # of the guests, by Debian's name
cache=${PINWHEEL_TESTBED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pinwheel-testbed${PINWHEEL_TESTBED_ARCH:+-$PINWHEEL_TESTBED_ARCH}${PINWHEEL_TESTBED_KERNEL:+-$PINWHEEL_TESTBED_KERNEL}}
case $arch in # where the programs for this machine are: among those of the guest, if it could run them, too
  amd64) tools=$cache/layer ;;
  arm64) tools=$cache/tools ;;
  *) echo "testbed: PINWHEEL_TESTBED_ARCH is amd64 or arm64, not $arch" >&2; exit 125 ;;
esac

log() { echo "testbed: $*" >&2; }
fail() { log "$*"; exit 125; }

# in_layer PROGRAM ARG...: a program of the cached packages, or else the host's.
in_layer() {
  local lib=$tools/usr/lib/$(uname -m)-linux-gnu
  PATH=$tools/usr/sbin:$tools/usr/bin:$PATH:/usr/sbin:/sbin \
    LD_LIBRARY_PATH=$lib:$lib/pulseaudio "$@"
}
