#!/bin/bash
# abi.sh dump LIBRARY FILE, abi.sh check LIBRARY FILE: the ABI of a C library of Pinwheel, as its headers declare it, into
# the file or beside that which the file has. New functions are no change; all else is.
set -euo pipefail
cd "$(dirname "$0")/.."

public=(--exported-interfaces-only --drop-private-types --headers-dir mpishim/include)
case $1 in
dump)
	exec abidw "${public[@]}" --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$3" "$2"
	;;
check)
	now=$(mktemp)
	trap 'rm -f "$now"' EXIT
	"$0" dump "$2" "$now"
	abidiff --no-added-syms "$3" "$now" || {
		echo "$2: its ABI is not that of $3. Programs linked with the last release may break: undo the change or raise the" \
			"SONAME. If it is compatible, as a field at the end of a struct that has its size, write the file anew: make abi-dump" >&2
		exit 1
	}
	;;
esac
