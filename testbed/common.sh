# Shared by fetch.sh and run.sh: where the cache lies and how to speak to people.

cache=${PINWHEEL_TESTBED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pinwheel-testbed${PINWHEEL_TESTBED_KERNEL:+-$PINWHEEL_TESTBED_KERNEL}}

log() { echo "testbed: $*" >&2; }
fail() { log "$*"; exit 125; }

# in_layer PROGRAM ARG...: a program of the cached packages, or else the host's.
in_layer() {
  local lib=$cache/layer/usr/lib/$(uname -m)-linux-gnu
  PATH=$cache/layer/usr/sbin:$cache/layer/usr/bin:$PATH:/usr/sbin:/sbin \
    LD_LIBRARY_PATH=$lib:$lib/pulseaudio "$@"
}
