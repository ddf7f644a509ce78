#!/bin/bash
# Run the tests of Go packages in the test bed: compiled on the host, each run
# in its package's directory, as "go test" does.
#
#   testbed/gotest.sh [run.sh's options] [-- TEST-FLAG...] PACKAGE...
#
# e.g.  testbed/gotest.sh -n 2 -- -test.run=TwoNodes ./verbs/rdma/rc
# The output of each package's tests is left in run.sh's -o DIR as NAME.NODE.log,
# and printed where they fail.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

options=() flags=() packages=()
while [[ ${1:-} == -[a-z] ]]; do options+=("$1" "$2"); shift 2; done
if [ "${1:-}" = -- ]; then shift; fi
while [ $# -gt 0 ]; do
  case $1 in -*) flags+=("$1") ;; *) packages+=("$1") ;; esac
  shift
done
[ ${#packages[@]} -gt 0 ] || fail "no packages given"

build=$(mktemp -d "${TMPDIR:-/tmp}/pinwheel-gotest.XXXXXX")
trap 'rm -rf "$build"' EXIT
"$here/fetch.sh" > /dev/null
found=$(go list -f '{{.ImportPath}} {{.Dir}}' "${packages[@]}") # fails for a package that is not there
list=()
while read -r path dir; do
  name=${path//\//-}
  go test -c -o "$build/$name.test" "$path"
  [ ! -x "$build/$name.test" ] || list+=("$name" "$dir") # a package without tests has none
done <<< "$found"
[ ${#list[@]} -gt 0 ] || fail "no tests in ${packages[*]}"

{ printf 'flags=('; [ ${#flags[@]} = 0 ] || printf '%q ' "${flags[@]}"; echo ')'; } > "$build/all.sh"
cat >> "$build/all.sh" <<'S'
set -u
build=$1 failed=0
shift
while [ "$1" != -- ]; do
  name=$1 log=$OUT/$1.$TESTBED_NODE.log
  cd "$2"
  shift 2
  start=$SECONDS
  if "$build/$name.test" -test.v "${flags[@]}" > "$log" 2>&1; then
    echo "ok    $name  $((SECONDS - start)) s, $(grep -c -- '^--- PASS' "$log") passed, $(grep -c -- '^--- SKIP' "$log") skipped"
  else
    failed=1
    cat "$log"
    echo "FAIL  $name  $((SECONDS - start)) s"
  fi
done
exit $failed
S
"$here/run.sh" "${options[@]}" bash "$build/all.sh" "$build" "${list[@]}" --
