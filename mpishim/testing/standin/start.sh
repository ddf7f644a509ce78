#!/bin/bash
# Processor time of the start and the end of a rank on the stand-ins, library included, in ms: without the
# library, with it passing everything through, with no large message, and with some.
#
#   start.sh DIRECTORY RUNS      DIRECTORY has the libraries and path
set -u
dir=$1 runs=$2
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
TIMEFORMAT='%U %S %R'
rank() { # MODE MESSAGES [VARIABLE...]: one run, as "MODE user system elapsed"
	local mode=$1 messages=$2
	shift 2
	{ time env LD_LIBRARY_PATH="$dir" "$@" "$dir/path" 4 2 0 "$messages" >/dev/null; } 2>&1 | sed "s/^/$mode /" >> "$lines"
}
for ((r = 1; r <= runs; r++)); do
	rank none 8 A=
	rank pass-through 8 LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_DISABLE=y
	rank no-large-message 0 LD_PRELOAD="$dir/libpinwheel.so"
	rank auto 8 LD_PRELOAD="$dir/libpinwheel.so"
	rank uffd 8 LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_WATCH=uffd
done
awk '
  { cpu[$1] += 1000 * ($2 + $3); wall[$1] += 1000 * $4; n[$1]++ }
  END {
    split("none pass-through no-large-message auto uffd", order, " ")
    for (i = 1; i <= 5; i++) {
      m = order[i]
      printf "%-17s %6.1f ms of processor time, %+.1f over none; %.0f ms from start to end\n",
        m, cpu[m] / n[m], cpu[m] / n[m] - cpu["none"] / n["none"], wall[m] / n[m]
    }
  }' "$lines"
