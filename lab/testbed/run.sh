#!/bin/bash
# Run a command on one or two virtual machines with a Soft-RoCE device each.
#
#   lab/testbed/run.sh [-n NODES] [-o DIR] [-t SECONDS] [-m MIB] [-c CPUS] COMMAND [ARG...]
#
#   -n  1 (default), or 2: joined by a network; the command runs on both
#   -o  directory that the command sees as $OUT, read-write (default: a fresh one, removed)
#   -t  time limit, boot included (default 300)
#   -m  memory of a node in MiB (default 4096)
#   -c  processors of a node (default: the host's, shared among the nodes)
#
# The command sees the host's files under the same paths and starts in the same
# directory, as root; what it writes outside $OUT is gone afterwards. See README.md.
# Exit status: the command's (the first that failed, of two), 124 after the time
# limit, 125 if a machine did not get as far as the command.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

arguments=("$@")
nodes=1 out="" limit=300 mib=4096 cpus=""
while getopts n:o:t:m:c: option; do
  case $option in
    n) nodes=$OPTARG ;; o) out=$OPTARG ;; t) limit=$OPTARG ;; m) mib=$OPTARG ;; c) cpus=$OPTARG ;;
    *) fail "usage: run.sh [-n NODES] [-o DIR] [-t SECONDS] [-m MIB] [-c CPUS] COMMAND [ARG...]" ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || fail "no command given"
case $nodes in 1 | 2) ;; *) fail "-n is 1 or 2, not $nodes" ;; esac
cpus=${cpus:-$((($(nproc) + nodes - 1) / nodes))}

"$here/fetch.sh" > /dev/null
exec 9> "$cache/lock"
flock -s 9 # no fetch takes the files away while a guest uses them
kernel=$(echo "$cache"/layer/boot/vmlinuz-*)
work=$(mktemp -d "${TMPDIR:-/tmp}/pinwheel-testbed.XXXXXX")
pids=()
cleanup() {
  # Only what this script started, by process number.
  for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
if [ -z "$out" ]; then out=$work/out; fi
mkdir -p "$out"
out=$(cd "$out" && pwd)

# The machine, its console, and the line on which the command speaks, as QEMU and the guest call them.
case $arch in
  amd64)
    # no_timer_check: on a machine that does much else, the timer may come too late for the check of it at boot.
    machine=(qemu-system-x86_64 -L "$tools/usr/share/seabios" -cpu max)
    console=ttyS0 output=ttyS1 parameters="mitigations=off no_timer_check"
    ;;
  arm64)
    machine=(qemu-system-aarch64 -machine virt -cpu neoverse-n1)
    console=ttyAMA0 output=ttyAMA1 parameters="mitigations=off"
    ;;
esac

boot() { # boot NODE: a machine in the background, its command's output on ours
  local node=$1 run=$work/node$1 network=() prefix=""
  mkdir "$run"
  cp "$here/guest.sh" "$run/"
  printf 'TESTBED_NODE=%d TESTBED_NODES=%d directory=%q console=%s output=%s\n' "$node" "$nodes" "$PWD" "$console" "$output" > "$run/settings"
  printf '%q ' "${command[@]}" > "$run/command"
  if [ "$nodes" = 2 ]; then
    prefix="node$node: "
    network=(-device "virtio-net-pci,netdev=net,mac=52:54:00:99:00:0$((node + 1)),host_mtu=4400,romfile="
      -netdev "stream,id=net,addr.type=unix,addr.path=$work/net,server=$([ "$node" = 0 ] && echo on || echo off)")
  fi
  # exec, so that $! is the process to kill.
  in_layer exec timeout -k 5 "$limit" "${machine[@]}" -L "$tools/usr/share/qemu" \
    -accel tcg,thread=multi -smp "$cpus" -m "$mib" -nodefaults -display none -no-reboot \
    -kernel "$kernel" -initrd "$cache/initrd.img" -append "console=$console quiet panic=-1 $parameters" \
    -virtfs local,path=/,mount_tag=host,security_model=passthrough,readonly=on,multidevs=remap \
    -virtfs "local,path=$cache/layer,mount_tag=layer,security_model=passthrough,readonly=on" \
    -virtfs "local,path=$run,mount_tag=run,security_model=none" \
    -virtfs "local,path=$out,mount_tag=out,security_model=none" \
    "${network[@]}" -serial "file:$run/console" -chardev stdio,id=output,signal=off -serial chardev:output \
    < /dev/null > >(sed -u "s/^/$prefix/") &
  pids+=($!)
}

# An emulated processor may lose its timer for good as the kernel boots, which then waits for ever. The kernel says so.
lost_timer='Possible timer handling issue'

# watch_boot NODE PID: ends a machine whose kernel has lost a timer before the command runs.
watch_boot() {
  local run=$work/node$1
  until [ -f "$run/booted" ]; do
    if grep -qs "$lost_timer" "$run/console"; then
      kill "$2"
      return
    fi
    sleep 1
  done
}

# verdict NODE QEMU_STATUS: the exit status of a machine that has ended, explained if it is not the command's.
verdict() {
  local run=$work/node$1
  cp "$run/console" "$out/console.$1" 2> /dev/null || true
  if [ -f "$run/exit-status" ]; then
    status=$(cat "$run/exit-status")
    return
  fi
  case $2 in 124 | 137) status=124 ;; *) status=125 ;; esac
  if [ "$result" != 0 ]; then
    log "node $1 was stopped: the other one had failed"
    return
  elif [ -f "$run/booted" ]; then
    log "node $1 ended without an exit status (limit $limit s). The console's last lines:"
  else
    log "node $1 did not get as far as the command. The console's last lines:"
    ! grep -qs "$lost_timer" "$run/console" || fault="lost a timer as it booted"
  fi
  if [ -s "$run/console" ]; then tail -n 30 "$run/console" >&2; else log "(none: QEMU or the kernel did not start)"; fi
}

command=("$@")
result=0 fault="" # of the emulator, if that is why a machine failed
for ((node = 0; node < nodes; node++)); do
  boot "$node"
  # The second machine connects to the first one's socket.
  while [ "$nodes" = 2 ] && [ ! -S "$work/net" ] && kill -0 "${pids[0]}" 2> /dev/null; do
    sleep 0.1
  done
done
declare -A node_of
for node in "${!pids[@]}"; do node_of[${pids[node]}]=$node; done
for pid in "${!node_of[@]}"; do
  watch_boot "${node_of[$pid]}" "$pid" &
  pids+=($!)
done
while [ ${#node_of[@]} -gt 0 ]; do
  qemu=0
  wait -n -p pid "${!node_of[@]}" || qemu=$?
  verdict "${node_of[$pid]}" "$qemu"
  [ "$result" != 0 ] || result=$status
  unset "node_of[$pid]"
  # A node that failed leaves the other one waiting for it: end that soon.
  if [ "$status" != 0 ] && [ ${#node_of[@]} -gt 0 ]; then
    (sleep 10; kill "${!node_of[@]}") 2> /dev/null &
    pids+=($!)
  fi
done

# QEMU's processors may run what the kernel has just patched, which it does where a BPF program begins or ends to look at a
# function: int3, of which the kernel knows nothing any more. That is the emulator's, and once in fifty boots or fewer.
! grep -qs 'Oops: int3' "$out"/console.* || fault="met its own breakpoint"
if [ "$result" != 0 ] && [ -n "$fault" ] && [ -z "${TESTBED_AGAIN-}" ]; then
  log "the guest's kernel $fault, as emulated processors do now and then: once more"
  cleanup
  TESTBED_AGAIN=1 exec "$here/run.sh" "${arguments[@]}"
fi
exit "$result"
