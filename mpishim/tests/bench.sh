#!/bin/bash
# Pinned memory in the compute phase and exchange time, in the test bed's guest:
# libfabric's own cache, no cache at all, and Pinwheel, in turn, several rounds.
#
#   bench.sh LIBRARIES TESTS ROUNDS
#
# One line a run, then the medians and the ratios that matter.
set -u
lib=$1 tests=$2 rounds=$3
. "$(dirname "$0")/guest.env" 2
lines=$(mktemp)
preload=(-x "LD_PRELOAD=$lib/libpinwheel.so" -x "PINWHEEL_STATS=/tmp/stats.%r.json")
for ((r = 1; r <= rounds; r++)); do
  for mode in libfabric none pinwheel leave-pinned; do
    unset FI_MR_CACHE_MAX_COUNT
    args=()
    [ $mode = libfabric ] || export FI_MR_CACHE_MAX_COUNT=0
    case $mode in pinwheel | leave-pinned) args=("${preload[@]}" -x "PINWHEEL_POLICY=$mode") ;; esac
    rm -f /tmp/stats.*
    out=$(timeout -k 5 200 mpirun -np 2 "${args[@]}" "$tests/pinned" 2>&1)
    case $out in *"data right"*) ;; *) echo "$mode failed: $out"; continue ;; esac
    result=$(grep ^pinned: <<< "$out" | head -1)
    counts=$(grep -oh '"\(first_regs\|late_regs\|helper_regs\|helper_deregs\)":[0-9]*' /tmp/stats.0.json 2> /dev/null | tr -d '"' | tr '\n' ' ')
    echo "$mode run $r ${result#pinned: } $counts" | tee -a "$lines"
  done
done
awk '
  function median(list, n, a, i, j, t) {
    n = split(list, a, " ")
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (a[j] + 0 < a[i] + 0) { t = a[i]; a[i] = a[j]; a[j] = t }
    return n ? a[int((n + 1) / 2)] : 0
  }
  { ms[$1] = ms[$1] " " $5; kb[$1] = kb[$1] " " $7 }
  END {
    for (m in ms) printf "median %-13s exchange %.3f ms, VmPin %.1f MB\n", m, median(ms[m]), median(kb[m]) / 1024
    printf "VmPin over the floor without a cache: libfabric %+.1f %%, pinwheel %+.1f %%\n",
      100 * median(kb["libfabric"]) / median(kb["none"]) - 100, 100 * median(kb["pinwheel"]) / median(kb["none"]) - 100
    printf "exchange against libfabric: pinwheel %+.1f %%, none %+.1f %%\n",
      100 * median(ms["pinwheel"]) / median(ms["libfabric"]) - 100, 100 * median(ms["none"]) / median(ms["libfabric"]) - 100
  }' "$lines"
