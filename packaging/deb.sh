#!/bin/bash
# deb.sh DIST DIRECTORY: Debian packages, in the directory, of the tarball that make dist has written to DIST. What builds
# them need not be Debian's: Go, that is, which is newer than the one of Debian 12.
set -euo pipefail
cd "$(dirname "$0")/.."
tarball=$(ls "$1"/pinwheel-*.tar.gz)
name=$(basename "$tarball" .tar.gz)
rm -rf "$2"
mkdir -p "$2"
cp "$tarball" "$2/pinwheel_${name#pinwheel-}.orig.tar.gz"
tar -xzf "$tarball" -C "$2"
cd "$2/$name"
GOCACHE=$(go env GOCACHE)
export GOCACHE
export DEB_BUILD_OPTIONS=noautodbgsym # most of the time would go into compressing those
unset MAKEFLAGS GOFLAGS
dpkg-buildpackage --no-sign --no-check-builddeps --build=full >../build.log 2>&1 ||
	{ tail -n 30 ../build.log >&2; echo "make deb: dpkg-buildpackage failed (out/deb/build.log)" >&2; exit 1; }
cd ..
rm -rf "$name"
# That one is about bugs in Debian, which these packages are not in.
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs ./*.changes
ls -l ./*.deb
