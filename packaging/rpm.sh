#!/bin/bash
# rpm.sh DIST DIRECTORY: RPM packages, in the directory, of the tarball that make dist has written to DIST; then what rpmlint
# says, and whether they can be installed and removed. Built with Debian's rpm, whose database has no package: hence --nodeps.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "make rpm: $*" >&2; exit 1; }
tarball=$(cd "$1" && ls "$PWD"/pinwheel-*.tar.gz)
rm -rf "$2"
mkdir -p "$2"
out=$(cd "$2" && pwd)
GOCACHE=$(go env GOCACHE)
export GOCACHE
unset MAKEFLAGS GOFLAGS

rpmbuild -ta --nodeps --define "_topdir $out/top" "$tarball" >"$out/build.log" 2>&1 ||
	{ tail -n 30 "$out/build.log" >&2; fail "rpmbuild failed (out/rpm/build.log)"; }
mv "$out"/top/RPMS/*/*.rpm "$out/"
packages=("$out"/*.rpm)
mv "$out"/top/SRPMS/*.rpm "$out/"
rm -rf "$out/top"
said=$(rpmlint --config packaging/rpm/rpmlint.toml "$out"/*.rpm) || { echo "$said" >&2; fail "rpmlint (see above)"; }
! grep -E ': [EW]: ' <<<"$said" >&2 || fail "rpmlint (see above)"

root=$out/root
mkdir -p "$root"
rpm --root "$root" --nodeps --noscripts -i "${packages[@]}"
PATH=$root/usr/bin:$PATH
read -r version _ < <(tar -xzOf "$tarball" --wildcards '*/.tarball-version')
[ "$(pinwheel --version)" = "pinwheel $version" ] || fail "the command that is installed is $(pinwheel --version), not $version"
library=$(LD_LIBRARY_PATH=$root/usr/lib64 pinwheel doctor | grep -o "/[^ ]*/libpinwheel.so" | head -n 1)
[ "$library" = "$(realpath "$root")/usr/lib64/pinwheel/libpinwheel.so" ] || fail "the command finds ${library:-no libpinwheel.so}"
# shellcheck disable=SC2046 # names of packages
rpm --root "$root" --nodeps --noscripts -e $(rpm --root "$root" -qa)
left=$(find "$root" -name '*pinwheel*')
[ -z "$left" ] || fail "left after the packages were removed:" $left
rm -rf "$root"
ls -l "$out"/*.rpm
