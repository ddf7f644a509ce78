#!/bin/bash
# What recording costs: NAS parallel benchmarks on two ranks over shared memory, where
# calls are fastest, with the library preloaded, and with it recording, in turn.
#
#   record.sh LIBRARIES NPB PAIRS BENCHMARK...
#
# NPB has the programs of NPB 3.4 for MPI, which this project does not include: a
# BENCHMARK such as ft.B is NPB/ft.B.x. The time is the one that the benchmark measures.
# One line a benchmark: the median of the pairs' ratios, and the least and greatest.
set -u
[ $# -ge 4 ] || { echo "usage: record.sh LIBRARIES NPB PAIRS BENCHMARK..." >&2; exit 2; }
lib=$1 npb=$2 pairs=$3
shift 3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run BENCHMARK [OPTION...]: sets seconds
run() {
  local program=$npb/$1.x out
  shift
  out=$(mpirun -np 2 -x "LD_PRELOAD=$lib/libpinwheel.so" "$@" "$program" 2>&1)
  case $out in *SUCCESSFUL*) ;; *) echo "record.sh: $program failed: $out" >&2; exit 1 ;; esac
  seconds=$(sed -n 's/.*Time in seconds *= *//p' <<< "$out")
}

for b in "$@"; do
  [ -x "$npb/$b.x" ] || { echo "record.sh: no program $npb/$b.x: build NPB 3.4-MPI (make ft CLASS=B, and so on) and give its bin directory" >&2; exit 2; }
  : > "$work/ratios"
  for ((i = 0; i < pairs; i++)); do
    run "$b"
    plain=$seconds
    run "$b" -x "PINWHEEL_RECORD=$work/%r.pwt"
    [ -s "$work/0.pwt" ] || { echo "record.sh: $b left no trace" >&2; exit 1; }
    echo "$plain $seconds" >> "$work/ratios"
  done
  awk '{ print 100 * $2 / $1 - 100, $1, $2 }' "$work/ratios" | sort -n | awk -v b="$b" -v bytes="$(stat -c %s "$work/0.pwt")" '
    { r[NR] = $1; plain[NR] = $2 }
    END { printf "%s: recording costs %+.2f %% (%+.2f to %+.2f, %d pairs of about %.1f s; trace of a rank %d kB)\n", b, r[int((NR + 1) / 2)], r[1], r[NR], NR, plain[int((NR + 1) / 2)], bytes / 1000 }'
done
