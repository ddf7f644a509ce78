#!/bin/bash
# The share of the path in an exchange of 17 KB between two ranks over shared memory: without
# the library, with it passing everything through, and with it managing, in turn.
#
#   latency.sh LIBRARIES TESTS ROUNDS
set -u
lib=$1 tests=$2 rounds=$3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for ((r = 1; r <= rounds; r++)); do
  for mode in none pass-through pinwheel; do
    args=(-x "LD_PRELOAD=$lib/libpinwheel.so")
    case $mode in
      none) args=() ;;
      pass-through) args+=(-x PINWHEEL_DISABLE=y) ;;
      pinwheel) args+=(-x PINWHEEL_STATS=/dev/null) ;; # or it would not start without verbs
    esac
    out=$(timeout -k 5 100 mpirun -np 2 --mca pml ob1 --mca btl self,vader "${args[@]}" "$tests/latency" 2>&1)
    case $out in *"data right"*) ;; *) echo "$mode failed: $out" >&2; exit 1 ;; esac
    echo "$mode $r $(sed -n 's/^latency: \([0-9]*\) ns$/\1/p' <<< "$out")" >> "$lines"
  done
done
awk "$(cat "$(dirname "$0")/../../../mpishim/testing/standin/median.awk")"'
  function over(one, other,  r, list, a, n) {
    for (r in rounds) list = list " " (100 * ns[one, r] / ns[other, r] - 100)
    n = sorted(list, a)
    printf "%s over %s: %+.2f %% (%+.2f to %+.2f, %d rounds)\n", one, other, a[int((n + 1) / 2)], a[1], a[n], n
  }
  { ns[$1, $2] = $3; rounds[$2]; all[$1] = all[$1] " " $3 }
  END {
    printf "an exchange of 17 KB over shared memory: %d ns\n", median(all["none"])
    over("pass-through", "none")
    over("pinwheel", "none")
    over("pinwheel", "pass-through")
  }' "$lines"
