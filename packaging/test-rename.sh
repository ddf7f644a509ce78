#!/bin/bash
# test-rename.sh: in a copy of this commit, under another module path everything compiles, the tests that name packages pass,
# and programs have their version. Renamed back, no byte differs.
set -euo pipefail
cd "$(dirname "$0")/.."
script=$PWD/packaging/rename-module.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

git clone -q . "$tmp/copy"
cd "$tmp/copy"
was=$(go list -m)
new=example.org/somebody/pinwheel
"$script" "$new"
! git grep -nE "^module $was|\"$was/" -- '*.go' '*go.mod' Makefile || { echo "$0: these still name $was" >&2; exit 1; }
go vet ./...
go test -count=1 -run 'Import|Pure|Link' .
make --no-print-directory -s build
version=$(packaging/version.sh)
[ "$(bin/pinwheel --version)" = "pinwheel $version" ] || { echo "$0: bin/pinwheel is not $version" >&2; exit 1; }

git -c user.name=test -c user.email=test@localhost commit -qam renamed
"$script" "$was" >/dev/null
git diff --stat --exit-code HEAD^ || { echo "$0: renamed back, these files differ" >&2; exit 1; }
