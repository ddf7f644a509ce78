#!/bin/bash
# Many launches: programs that end in every way, on the stand-ins and under Open
# MPI with shared memory. Each must end in time, as it does without the library.
#
#   soak.sh LIBRARIES TESTS LAUNCHES
set -u
dir=$1 tests=$2 launches=$3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
ulimit -c 0
ways=("" status threads fork process windows after exit _exit abort segv)
mpi_ways=(finalize status exit abort segv fork no-mpi)
policies=(pinwheel paper leave-pinned on-demand)
for f in "$dir/life" "$dir/libpinwheel.so" "$dir/libpinwheel-go.so" "$tests/lifecycle"; do
  [ -r "$f" ] || { echo "soak: $f is missing (make standin mpi-programs)" >&2; exit 2; }
done
declare -A want
failed=0 start=$SECONDS

# The status of one launch; 124 is a hang.
launch() { timeout -k 5 100 "$@" > /dev/null 2>&1; echo $?; }

for w in "${ways[@]}"; do want["life $w"]=$(LD_LIBRARY_PATH=$dir launch "$dir/life" "$w"); done
for w in "${mpi_ways[@]}"; do want["mpi $w"]=$(launch mpirun -np 2 "$tests/lifecycle" "$w"); done
for ((i = 0; i < launches; i++)); do
  policy=${policies[RANDOM % ${#policies[@]}]}
  stats=n
  [ $((RANDOM % 3)) != 0 ] || stats=/dev/null
  if [ $((i % 5)) != 0 ]; then
    w=${ways[RANDOM % ${#ways[@]}]} key="life $w"
    got=$(LD_LIBRARY_PATH=$dir launch env "LD_PRELOAD=$dir/libpinwheel.so" PINWHEEL_POLICY=$policy PINWHEEL_STATS=$stats "$dir/life" "$w")
  else
    w=${mpi_ways[RANDOM % ${#mpi_ways[@]}]} key="mpi $w"
    got=$(launch mpirun -np 2 -x "LD_PRELOAD=$dir/libpinwheel.so" -x PINWHEEL_POLICY=$policy -x PINWHEEL_STATS=$stats "$tests/lifecycle" "$w")
  fi
  if [ "$got" != "${want[$key]}" ]; then
    failed=$((failed + 1))
    echo "FAIL  $key, policy $policy, stats $stats: status $got, without us ${want[$key]}"
  fi
done
echo "$launches launches, $failed failed, $((SECONDS - start)) s"
[ $failed = 0 ]
