#!/bin/bash
# test-abi.sh DIRECTORY: the C libraries in the directory have the SONAMEs, the symbol versions and the ABI of
# packaging/abi. Then the check itself, with libraries that are incompatible.
set -euo pipefail
cd "$(dirname "$0")/.."

for dump in packaging/abi/*.abi; do
	packaging/abi.sh check "$1/$(basename "$dump" .abi).so.0" "$dump"
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

lib=libpinwheel-api.so.0
dump=packaging/abi/libpinwheel-api.abi

# fails WHAT LIBRARY DUMP: that library must not pass beside that dump.
fails() {
	if packaging/abi.sh check "$2" "$3" >/dev/null 2>&1; then
		echo "$0: a library with $1 passes" >&2
		exit 1
	fi
}

# compiled_fails WHAT FLAG: the library, compiled with one flag more, must not pass.
compiled_fails() {
	make --no-print-directory -s -B SHIM_LIB="$tmp" CC="${CC:-cc} $2" "$tmp/$lib"
	fails "$1" "$tmp/$lib" "$dump"
}

compiled_fails "a function less" -Dpinwheel_clean=pinwheel_cleaned
sed '/^struct pinwheel_region {/a uint64_t first;' mpishim/include/pinwheel.h >"$tmp/pinwheel.h"
compiled_fails "another struct" "-I$tmp"
sed 's/soname=.libpinwheel-api.so.0/&9/' "$dump" >"$tmp/soname.abi"
fails "another SONAME" "$1/$lib" "$tmp/soname.abi"
sed 's/PINWHEEL_0/PINWHEEL_9/' "$dump" >"$tmp/version.abi"
fails "another symbol version" "$1/$lib" "$tmp/version.abi"
