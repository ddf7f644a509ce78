#!/bin/bash
# Pinned memory in the compute phase and exchange time, in the test bed's guest:
# libfabric's own cache, no cache at all, and Pinwheel, in turn, several rounds.
#
#   bench.sh LIBRARIES TESTS ROUNDS
#
# One line a run, then the medians and the ratios that matter: of each round's runs
# to each other, then the median of those.
set -u
lib=$1 tests=$2 rounds=$3
ranks=2
. "$(dirname "$0")/guest.env" $ranks
keep_cores_idle $ranks
lines=$(mktemp)
preload=(-x "LD_PRELOAD=$lib/libpinwheel.so" -x "PINWHEEL_STATS=/tmp/stats.%r.json")
for ((r = 1; r <= rounds; r++)); do
  for mode in libfabric none pinwheel leave-pinned; do
    unset FI_MR_CACHE_MAX_COUNT
    args=()
    [ $mode = libfabric ] || export FI_MR_CACHE_MAX_COUNT=0
    case $mode in pinwheel | leave-pinned) args=("${preload[@]}" -x "PINWHEEL_POLICY=$mode") ;; esac
    rm -f /tmp/stats.*
    out=$(timeout -k 5 200 mpirun -np $ranks --bind-to core "${args[@]}" "$tests/pinned" 2>&1)
    case $out in *"data right"*) ;; *) echo "$mode failed: $out"; continue ;; esac
    result=$(grep ^pinned: <<< "$out" | head -1)
    counts=$(grep -oh '"\(hits\|waited\|first_regs\|late_regs\|helper_regs\|helper_deregs\)":[0-9]*' /tmp/stats.*.json 2> /dev/null | tr -d '"' | tr '\n' ' ')
    echo "$mode run $r ${result#pinned: } $counts" | tee -a "$lines"
  done
done
awk "$(cat "$(dirname "$0")/../standin/median.awk")"'
  function ends(list,  a, n) { n = sorted(list, a); return sprintf("%+.1f to %+.1f", a[1], a[n]) }
  function over(what, name, one, other,  r, list) {
    for (r in rounds)
      if (what[one, r] && what[other, r]) list = list " " (100 * what[one, r] / what[other, r] - 100)
    printf "%s, %s over %s: %+.1f %% (%s)\n", name, one, other, median(list), ends(list)
  }
  {
    ms[$1, $3] = $5; kb[$1, $3] = $7; rounds[$3]
    all_ms[$1] = all_ms[$1] " " $5; all_kb[$1] = all_kb[$1] " " $7
    for (i = 10; $1 == "pinwheel" && i <= NF; i++) { split($i, count, ":"); sum[count[1]] += count[2] }
  }
  END {
    split("libfabric none leave-pinned pinwheel", order, " ")
    for (i = 1; i <= 4; i++)
      printf "median %-13s exchange %.3f ms, VmPin %.1f MB\n", order[i], median(all_ms[order[i]]), median(all_kb[order[i]]) / 1024
    over(kb, "VmPin in the compute phase", "libfabric", "none")
    over(kb, "VmPin in the compute phase", "pinwheel", "none")
    over(ms, "exchange", "pinwheel", "libfabric")
    over(ms, "exchange", "pinwheel", "leave-pinned")
    uses = sum["hits"] + sum["waited"] + sum["first_regs"] + sum["late_regs"]
    if (uses)
      printf "late, warm-up included: %d of %d uses, %.2f %%\n", sum["late_regs"], uses, 100 * sum["late_regs"] / uses
  }' "$lines"
