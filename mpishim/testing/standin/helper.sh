#!/bin/bash
# Processor time of the helper a use, beside the registrations themselves, and its wake-ups: phases of 64
# uses of 64 KiB, 1 to 200 ms apart, then silence.
#
#   helper.sh DIRECTORY      DIRECTORY has the libraries and path
set -u
dir=$1
helper() { # BUFFERS ROUNDS PAUSE_US MESSAGES: what PINWHEEL_LOG=debug says of the helper
	env LD_LIBRARY_PATH="$dir" LD_PRELOAD="$dir/libpinwheel.so" PINWHEEL_WATCH_WAIT=y PINWHEEL_LOG=debug PINWHEEL_HELPER_CPU=1 \
		"$dir/path" "$@" 2>&1 | grep ' helper: .*wake-ups' | sed 's/.* helper: //'
}
for pause_ms in 1 10 50 200; do
	helper 64 $((3000 / pause_ms)) $((1000 * pause_ms)) 64 | awk -v p=$pause_ms '{
		printf "phases of 64 uses, %3d ms apart: %6.2f us a use (%.2f wake-ups a phase, %d uses); registrations %.1f us a use\n",
			p, 1000 * ($1 - $6) / $18, $16 * 64 / $18, $18, 1000 * $6 / $18 }'
done
helper 4 2 2000000 1 | awk '{ printf "silence: %.0f us a second, %.1f wake-ups a second\n", 1000 * ($1 - $6) / 4, $16 / 4 }'
