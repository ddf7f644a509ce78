#!/bin/bash
# The overhead of the path on the stand-ins, without the library, with it passing everything
# through, and with it managing, in turn: of a large message that is registered, and of calls
# that register nothing.
#
#   bench.sh DIRECTORY ROUNDS      DIRECTORY has the libraries, path and calls
set -u
dir=$1 rounds=$2
export LD_LIBRARY_PATH=$dir
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for ((r = 1; r <= rounds; r++)); do
  for mode in none pass-through leave-pinned pinwheel; do
    case $mode in
      none) run=() ;;
      pass-through) run=(LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_DISABLE=y) ;;
      *) run=(LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_WATCH_WAIT=y PINWHEEL_POLICY=$mode) ;;
    esac
    # 16 buffers in bursts of 16, 500 us apart: the helper keeps up.
    echo "$mode $(env "${run[@]}" "$dir/path" 16 4000 500 16) $(env "${run[@]}" "$dir/calls" 4000)" >> "$lines"
  done
done
awk "$(cat "$(dirname "$0")/median.awk")"'
  {
    low[$1] = low[$1] " " $2; mid[$1] = mid[$1] " " $3; high[$1] = high[$1] " " $4
    for (k = 1; k <= 4; k++) calls[$1, k] = calls[$1, k] " " $(4 + k)
  }
  END {
    split("none pass-through leave-pinned pinwheel", order, " ")
    for (i = 1; i <= 4; i++) printf "%-13s %7.1f ns a message (quartiles %.1f and %.1f)\n", order[i], median(mid[order[i]]), median(low[order[i]]), median(high[order[i]])
    printf "over pass-through, which includes the registration of the stand-in: leave-pinned %+.1f ns, pinwheel %+.1f ns\n",
      median(mid["leave-pinned"]) - median(mid["pass-through"]), median(mid["pinwheel"]) - median(mid["pass-through"])
    split("MPI_Send of 8 B|MPI_Send of 17 KB, copied|MPI_Test|MPI_Iprobe", names, "|")
    for (k = 1; k <= 4; k++) printf "%-25s %5.1f ns; over that: pass-through %+.1f ns, pinwheel %+.1f ns\n", names[k], median(calls["none", k]),
      median(calls["pass-through", k]) - median(calls["none", k]), median(calls["pinwheel", k]) - median(calls["none", k])
  }' "$lines"
