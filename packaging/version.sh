#!/bin/sh
# version.sh [--package]: which Pinwheel this is, from the git tags v*: v0.3.0, and v0.3.0-5-gabcdef01 five commits later;
# the commit if there is no tag. With --package, as package managers sort it: 0.3.0, 0.3.0~rc1, 0.3.0+5.gabcdef01; without
# a tag, 0~git20261128.abcdef01. A release's tarball has both in a file, since it has no git.
set -eu
cd "$(dirname "$0")/.."

if [ -f .tarball-version ]; then
	read -r stamp package <.tarball-version
else
	stamp=$(git describe --always --abbrev=8 --match 'v[0-9]*' 2>/dev/null || echo unknown)
	case $stamp in
	v*) package=$(echo "$stamp" | sed 's/^v//; s/-\([0-9]*\)-\(g[0-9a-f]*\)$/+\1.\2/; s/-/~/g') ;;
	*) package=0~git$(git show -s --format=%cd --date=format:%Y%m%d HEAD 2>/dev/null || true).$stamp ;;
	esac
	# While a measurement writes results, what it measures stays the same build, and so it goes on where it was interrupted.
	git diff --quiet HEAD -- . ':!results' 2>/dev/null || [ $? -ne 1 ] || stamp=$stamp-dirty
fi
if [ "${1-}" = --package ]; then echo "$package"; else echo "$stamp"; fi
