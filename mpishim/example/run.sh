#!/bin/bash
# Build the example transport as a user would, and run it on a device under
# several policies: make test-softverbs, and at night the test bed's guest.
#
#   run.sh PREFIX      where "make install-api" installed
set -u
prefix=$1
here=$(dirname "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PINWHEEL_REQUIRE_RDMA # of the test bed; the library would warn of it
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# shellcheck disable=SC2046 # flags are words
cc -O2 -g -std=gnu11 -Wall -Wextra -fno-omit-frame-pointer $(pkg-config --cflags pinwheel) -o "$dir/transport" \
  "$here/transport.c" $(pkg-config --libs pinwheel) -libverbs || exit 1
failed=0
for policy in pinwheel leave-pinned on-demand; do
  echo "== $policy"
  PINWHEEL_POLICY=$policy timeout -k 5 200 "$dir/transport" 100 40 > "$dir/said" 2>&1
  status=$?
  cat "$dir/said"
  if [ $status != 0 ] || ! grep -q '^data right' "$dir/said"; then
    echo "FAIL  $policy (status $status)"
    failed=$((failed + 1))
  fi
done
[ $failed = 0 ]
