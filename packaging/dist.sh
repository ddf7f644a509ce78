#!/bin/bash
# dist.sh DIRECTORY: the source tarball of the commit that is checked out, its SBOM and SHA256SUMS, in the directory. The
# tarball has the Go modules in vendor/, so it builds without a network, and it has the same bytes whoever makes it.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "make dist: $*" >&2; exit 1; }

sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0

[ $# = 1 ] || die "usage: $0 DIRECTORY"
git rev-parse -q --verify HEAD >/dev/null || die "this is not a git checkout, which the tarball is made from"
stamp=$(packaging/version.sh)
if [[ $stamp == *-dirty ]]; then
	echo "make dist: changes that are not committed are left out" >&2
	stamp=${stamp%-dirty}
fi
package=$(packaging/version.sh --package)
[[ $stamp != v* || $stamp == *-g* ]] || grep -q "^## ${stamp#v}\( \|$\)" CHANGELOG.md ||
	die "CHANGELOG.md has no entry '## ${stamp#v}'; every release has one"
committed=$(git show -s --format=%ct HEAD)
name=pinwheel-$package
export LC_ALL=C TZ=UTC
umask 022

mkdir -p "$1"
out=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git archive --prefix="$name/" HEAD | tar -x -C "$tmp"
cd "$tmp/$name"
go mod download || die "the Go modules of go.mod can't be had (see above)"
# Before there is vendor/: licences are looked for in the module cache. The tool stamps the SBOM with the time and with a
# hash of how it was itself compiled.
go run "$sbom" mod -json -test -licenses -assert-licenses -noserial -output "$tmp/sbom.json" . 2>"$tmp/errors" ||
	die "$sbom: $(cat "$tmp/errors")"
jq --arg time "$(date -d "@$committed" +%Y-%m-%dT%H:%M:%SZ)" --arg version "$package" \
	'.metadata.timestamp = $time | .metadata.component.version = $version | del(.metadata.tools[].hashes)' \
	"$tmp/sbom.json" >"$out/$name.cdx.json"

go mod vendor
echo "$stamp $package" >.tarball-version
cat >debian/changelog <<END
pinwheel ($package-1) unstable; urgency=medium

  * Pinwheel $stamp. CHANGELOG.md says what changed.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -R -d "@$committed")
END
sed -i "s/^Version: .*/Version:        $package/" packaging/rpm/pinwheel.spec

cd ..
tar --sort=name --format=posix --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime --mtime="@$committed" \
	--owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX -c "$name" | gzip -9n >"$out/$name.tar.gz"
cd "$out"
sha256sum "$name.tar.gz" "$name.cdx.json" >SHA256SUMS
ls -l "$name.tar.gz" "$name.cdx.json" SHA256SUMS
