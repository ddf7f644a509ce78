#!/bin/bash
# Pinned memory and run time of NAS parallel benchmarks in the test bed's guest, 4
# ranks: libfabric's own cache, no cache at all, and Pinwheel, in turn, several rounds.
#
#   nas.sh LIBRARIES NPB ROUNDS "MODES" BENCHMARK...
#
# NPB has the programs of NPB 3.4 for MPI, which this project does not include: a
# BENCHMARK such as ft.A is NPB/ft.A.x. A mode is libfabric (its cache), none (no
# cache) or one of PINWHEEL_POLICY.
#
# VmPin of all ranks together is read ten times a second while every rank has
# memory pinned: from the first connections, in MPI_Init, to MPI_Finalize. One line
# a run, then the medians and the ratios that matter.
set -u
[ $# -ge 5 ] || { echo "usage: nas.sh LIBRARIES NPB ROUNDS \"MODES\" BENCHMARK..." >&2; exit 2; }
lib=$1 npb=$2 rounds=$3 modes=$4
shift 4
for b in "$@"; do
  [ -x "$npb/$b.x" ] || { echo "nas.sh: no program $npb/$b.x: build NPB 3.4-MPI (make ft CLASS=A, and so on) and give its bin directory" >&2; exit 2; }
done
ranks=4
. "$(dirname "$0")/guest.env" $ranks
keep_cores_idle $ranks
work=$(mktemp -d)

# vm_pin PID: sets kb to the pinned memory of a process, 0 if it has ended. Without a
# fork: processors are few here.
vm_pin() {
  local status line
  kb=0
  mapfile -t status 2> /dev/null < "/proc/$1/status" || return
  for line in "${status[@]}"; do
    case $line in VmPin:*) line=${line#VmPin:} line=${line% kB}; kb=$((line)); return ;; esac
  done
}

# sample LAUNCHER: writes "microseconds kB" for each look at the ranks that LAUNCHER
# runs (timeout, under it mpirun, under it the ranks) while it lives.
sample() {
  local pids=() total pid began mpirun=""
  while kill -0 "$1" 2> /dev/null; do
    read -rt 0.1 <> "$work/never"
    [ -n "$mpirun" ] || mpirun=$(pgrep -P "$1")
    [ ${#pids[@]} = $ranks ] || pids=($(pgrep -P "${mpirun:-0}"))
    [ ${#pids[@]} = $ranks ] || continue
    began=${EPOCHREALTIME/./} total=0
    for pid in "${pids[@]}"; do
      vm_pin "$pid"
      [ $kb != 0 ] || continue 2
      total=$((total + kb))
    done
    echo "$began $total"
  done
}

# pinned FILE: peak and time-weighted mean of samples, in MB.
pinned() {
  awk '
    NR > 1 { area += kb * ($1 - us); time += $1 - us }
    { us = $1; kb = $2; if (kb > most) most = kb }
    END { printf "vmpin_peak_mb %.1f vmpin_avg_mb %.1f", most / 1024, time ? area / time / 1024 : 0 }' "$1"
}

# counts: what the ranks of a run with Pinwheel report, added up.
counts() {
  cat "$work"/stats.*.json 2> /dev/null | tr ',{}' '\n' | tr -d '"' | awk -F: '
    /^(uses|first_regs|late_regs|helper_regs|helper_deregs|waited|lost_uses|stall_ns|helper_cpu_ns):/ && $2 ~ /^[0-9]+$/ { n[$1] += $2 }
    END { printf "uses %d first %d late %d helper_regs %d helper_deregs %d lost %d stall_ms %.0f helper_cpu_ms %.0f", n["uses"],
      n["first_regs"], n["late_regs"], n["helper_regs"], n["helper_deregs"], n["lost_uses"], n["stall_ns"] / 1e6, n["helper_cpu_ns"] / 1e6 }'
}

run() { # run BENCHMARK MODE ROUND
  local args=() launcher verified seconds
  unset FI_MR_CACHE_MAX_COUNT
  [ "$2" = libfabric ] || export FI_MR_CACHE_MAX_COUNT=0
  case $2 in
    libfabric | none) ;;
    *) args=(-x "LD_PRELOAD=$lib/libpinwheel.so" -x "PINWHEEL_STATS=$work/stats.%r.json" -x "PINWHEEL_POLICY=$2") ;;
  esac
  rm -f "$work"/stats.*
  timeout -k 5 900 mpirun -np $ranks --bind-to core "${args[@]}" "$npb/$1.x" > "$work/out" 2>&1 &
  launcher=$!
  sample $launcher > "$work/samples"
  wait $launcher || { echo "$1 $2 round $3 failed:"; cat "$work/out"; return; }
  verified=$(grep -qi 'Verification *= *SUCCESSFUL' "$work/out" && echo yes || echo NO)
  seconds=$(awk -F= '/Time in seconds/ { print $2 + 0 }' "$work/out")
  echo "$1 $2 round $3 verified $verified seconds $seconds $(pinned "$work/samples") $([ ${#args[@]} = 0 ] || counts)" | tee -a "$work/lines"
  grep '^pinwheel:' "$work/out"
}

mkfifo "$work/never"
for ((r = 1; r <= rounds; r++)); do
  for b in "$@"; do
    for mode in $modes; do run "$b" "$mode" $r; done
  done
done
awk "$(cat "$(dirname "$0")/../standin/median.awk")"'
  function over(value, base) { return base ? sprintf("%+.1f %%", 100 * value / base - 100) : "unknown" }
  {
    run = $1 " " $2
    if (!(run in seconds)) { order[++runs] = run; bench[run] = $1; mode[run] = $2 }
    if ($6 != "yes") wrong[run] = " NOT VERIFIED"
    seconds[run] = seconds[run] " " $8; peak[run] = peak[run] " " $10; mean[run] = mean[run] " " $12
  }
  END {
    for (i = 1; i <= runs; i++) {
      run = order[i]
      printf "median %-16s %8.2f s, VmPin peak %.0f MB, average %.0f MB%s", run, median(seconds[run]), median(peak[run]), median(mean[run]), wrong[run]
      if (mode[run] != "libfabric" && mode[run] != "none")
        printf "; average against none %s, time against libfabric %s", over(median(mean[run]), median(mean[bench[run] " none"])),
          over(median(seconds[run]), median(seconds[bench[run] " libfabric"]))
      print ""
    }
  }' "$work/lines"
