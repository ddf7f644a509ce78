#!/bin/bash
# Check each *.litmus against the memory model of C11, as rc11.cat repairs it, by herd7 (https://github.com/herd/herdtools7).
# The second line of each says whether what its last line describes may be seen: Never, or Sometimes, in a test that shows
# what would go wrong without one of the others' means.
set -euo pipefail
cd "$(dirname "$0")"

failed=0
for test in *.litmus; do
	want=$(sed -nE '2s/^\(\* (Never|Sometimes): .*/\1/p' "$test")
	said=$(herd7 -model rc11.cat "$test")
	if ! grep -qE "^Observation ${test%.litmus} $want " <<<"$said" || grep -q '^Flag' <<<"$said"; then
		echo "$said"
		echo "FAIL  $test: want $want, and no data race"
		failed=1
	else
		echo "ok    $test: $want, of $(sed -n 's/^States //p' <<<"$said") outcomes"
	fi
done
exit $failed
