#!/bin/bash
# test-dist.sh DIRECTORY: what make dist has written there. Made again by somebody else it has the same bytes; it builds
# without a network and without git; the SBOM has each module that a program links. Then versions: those of git tags, in the
# order in which package managers sort them, and a release that lacks its entry in CHANGELOG.md.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$0: $*" >&2; exit 1; }
dist=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT

(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
git clone -q . "$tmp/a checkout"
(
	cd "$tmp/a checkout"
	umask 077
	TZ=Asia/Tokyo LC_ALL=C.UTF-8 packaging/dist.sh "$tmp/again" >/dev/null
)
diff -r "$dist" "$tmp/again" || fail "the same commit gave other bytes"

name=$(basename "$dist"/*.tar.gz .tar.gz)
tar -xzf "$dist/$name.tar.gz" -C "$tmp"
(
	cd "$tmp/$name"
	export GOPROXY=off GOSUMDB=off GOMODCACHE="$tmp/none" GOFLAGS=-trimpath
	make --no-print-directory -s build
	make --no-print-directory -s install-api DESTDIR="$tmp/root" PREFIX=/usr
)
built=$(packaging/version.sh)
[ "$("$tmp/$name/bin/pinwheel" --version)" = "pinwheel ${built%-dirty}" ] || fail "the tarball's pinwheel is not ${built%-dirty}"

jq -r '.components[] | "\(.name)@\(.version)"' "$dist/$name.cdx.json" | sort >"$tmp/listed"
go version -m "$tmp/$name"/bin/{pinwheel,nasreplay,libpinwheel-{go.so,vmmc.so.0,watch.so.0}} |
	awk '$1 == "dep" { print $2 "@" $3 }' | sort -u >"$tmp/linked"
[ -s "$tmp/linked" ] || fail "go version names no module of the programs"
missing=$(comm -13 "$tmp/listed" "$tmp/linked")
[ -z "$missing" ] || fail "the SBOM lacks" $missing
unlicensed=$(jq -r '.components[] | select((.licenses | length) == 0 or (.hashes | length) == 0) | .name' "$dist/$name.cdx.json")
[ -z "$unlicensed" ] || fail "the SBOM has no licence or hash of" $unlicensed

# In another checkout: is TAG COMMITS-LATER STAMP PACKAGE.
cd "$tmp/a checkout"
git config user.name test
git config user.email test@localhost
last=0~git
is() {
	git tag -a -m "$1" "$1"
	for _ in $(seq "$2"); do git commit -q --allow-empty -m later; done
	local stamp package
	stamp=$(packaging/version.sh)
	package=$(packaging/version.sh --package)
	[[ $stamp == $3 && $package == $4 ]] || fail "$2 commits after $1, the version is $stamp, as a package $package"
	dpkg --compare-versions "$last" lt "$package" || fail "dpkg sorts $package before $last"
	last=$package
}
is v0.3.0-rc1 0 v0.3.0-rc1 '0.3.0~rc1'
is v0.3.0 0 v0.3.0 0.3.0
git tag not-a-version
git tag -d v0.3.0-rc1 >/dev/null
git tag -d v0.3.0 >/dev/null
is v0.3.1 5 'v0.3.1-5-g*' '0.3.1+5.g*'

git tag -a -m "" v0.4.0
! packaging/dist.sh "$tmp/release" 2>"$tmp/said" || fail "a release without an entry in CHANGELOG.md was made"
grep -q 'CHANGELOG.md has no entry' "$tmp/said" || fail "a release without an entry: $(cat "$tmp/said")"
sed -i '0,/^## /s//## 0.4.1 (2026-01-02)\n\n&/' CHANGELOG.md
git commit -qam "an entry"
git tag -a -m "" v0.4.1
packaging/dist.sh "$tmp/release" >/dev/null
[ -f "$tmp/release/pinwheel-0.4.1.tar.gz" ] || fail "the tarball of v0.4.1 is not called so: $(ls "$tmp/release")"
