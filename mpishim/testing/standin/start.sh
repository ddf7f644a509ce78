#!/bin/bash
# Processor time of the start and the end of a rank on the stand-ins, library included, in ms: without the
# library, with it passing everything through, with no large message, with some, and with some in each of four
# ranks of a job that run at the same time.
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
four() { # the times of four ranks, as one line
	{ time { for k in 1 2 3 4; do
		LD_LIBRARY_PATH="$dir" LD_PRELOAD="$dir/libpinwheel.so" "$dir/path" 4 2 50000 8 >/dev/null &
	done; wait; }; } 2>&1 | sed "s/^/four-ranks /" >> "$lines"
}
for ((r = 1; r <= runs; r++)); do
	rank none 8 A=
	rank pass-through 8 LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_DISABLE=y
	rank no-large-message 0 LD_PRELOAD="$dir/libpinwheel.so"
	rank auto 8 LD_PRELOAD="$dir/libpinwheel.so"
	rank uffd 8 LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_WATCH=uffd
	four
done
awk '
  { cpu[$1] += 1000 * ($2 + $3); wall[$1] += 1000 * $4; n[$1]++ }
  END {
    cpu["four-ranks"] /= 4 # each
    split("none pass-through no-large-message auto uffd four-ranks", order, " ")
    for (i = 1; i <= 6; i++) {
      m = order[i]
      printf "%-17s %6.1f ms of processor time, %+.1f over none; %.0f ms from start to end\n",
        m, cpu[m] / n[m], cpu[m] / n[m] - cpu["none"] / n["none"], wall[m] / n[m]
    }
  }' "$lines"
