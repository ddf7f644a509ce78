#!/bin/bash
# Run the MPI test programs in the test bed's guest (lab/testbed/run.sh runs this
# there): every program under every policy, with each number of ranks. The
# programs verify their data.
#
#   run.sh LIBRARIES TESTS "RANKS..." "POLICIES..." PROGRAM...
#
# LIBRARIES has libpinwheel.so, TESTS the programs. A policy is one of PINWHEEL_POLICY, or disabled.
#
# libfabric's ofi_rxm crashes now and then in MPI_Finalize, as others have reported: it posts
# a receive on an endpoint that it has closed (github.com/ofiwg/libfabric/issues/5122
# and 11828). A run that ended so, with its data right, is done again, once, and counted.
set -u
lib=$1 tests=$2 ranks=$3 policies=$4
shift 4
here=$(dirname "$0")
failed=0 runs=0 transport=0
start=$SECONDS
for n in $ranks; do
  . "$here/guest.env" "$n"
  export FI_MR_CACHE_MAX_COUNT=0
  for policy in $policies; do
    switches=(-x PINWHEEL_WATCH_WAIT=y -x "PINWHEEL_POLICY=$policy")
    [ "$policy" != disabled ] || switches=(-x PINWHEEL_DISABLE=y)
    for program in "$@"; do
      runs=$((runs + 1))
      for attempt in 1 2; do
        out=$(timeout -k 5 240 mpirun -np "$n" -x "LD_PRELOAD=$lib/libpinwheel.so" "${switches[@]}" "$tests/$program" 2>&1)
        status=$?
        case $status:$out in
          139:*"data right"*libfabric.so*ompi_mtl_ofi_finalize*)
            case $out in *libpinwheel*"+0x"*) break ;; esac
            [ $attempt = 2 ] || { transport=$((transport + 1)); echo "again $n ranks  $policy  $program  (libfabric crashed in MPI_Finalize)"; } ;;
          *) break ;;
        esac
      done
      case $status:$out in
        0:*"data right"*) echo "ok    $n ranks  $policy  $program" ;;
        *) failed=$((failed + 1)); echo "FAIL  $n ranks  $policy  $program  (status $status)"; echo "$out" ;;
      esac
    done
  done
done
echo "$runs runs, $failed failed, $transport done again after a crash of libfabric, $((SECONDS - start)) s"
[ $failed = 0 ]
