#!/bin/bash
# Run tests of Go packages, and commands, one after the other in one boot of the test bed.
#
#   lab/testbed/gotest.sh [run.sh's options] [-- GROUP]...
#
# A GROUP is [TEST-FLAG...] PACKAGE..., or NAME: COMMAND [ARG...], which runs as it is. Packages are compiled on the
# host, and each runs in its directory, as "go test" does, with TEST-FLAGs.
#
#   lab/testbed/gotest.sh -- -test.short ./verbs/rdma/... -- ./comm/files/faults -- api: mpishim/example/run.sh PREFIX
#   lab/testbed/gotest.sh -n 2 -- -test.run=TwoNodes ./verbs/rdma/rc
#
# One that fails keeps none from its turn. Each says how long it took. Its output is left in run.sh's -o DIR as
# NAME.NODE.log, and printed if it fails. Of two nodes, both begin each at the same time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

options=()
while [[ ${1:-} == -[a-z] ]]; do options+=("$1" "$2"); shift 2; done

build=$(mktemp -d "${TMPDIR:-/tmp}/pinwheel-gotest.XXXXXX")
trap 'rm -rf "$build"' EXIT
"$here/fetch.sh" > /dev/null

# What the guest runs: "run NAME DIRECTORY COMMAND..." a line.
plan=$build/plan
add() { printf ' %q' run "$@" >> "$plan"; echo >> "$plan"; }

add_group() { # add_group WORD...: a GROUP
  local flags=() packages=() found path dir name
  case $1 in *:) add "${1%:}" "$PWD" "${@:2}"; return ;; esac
  while [ $# -gt 0 ]; do
    case $1 in -*) flags+=("$1") ;; *) packages+=("$1") ;; esac
    shift
  done
  [ ${#packages[@]} -gt 0 ] || fail "no packages after ${flags[*]}"
  found=$(go list -f '{{.ImportPath}} {{.Dir}}' "${packages[@]}") # fails for a package that is not there
  while read -r path dir; do
    name=${path//\//-}
    go test -c -ldflags=-s -o "$build/$name.test" "$path" > /dev/null
    # A package without tests has none. One that hangs ends, as under "go test", with all stacks.
    [ ! -x "$build/$name.test" ] || add "$name" "$dir" "$build/$name.test" -test.v -test.timeout=10m "${flags[@]}"
  done <<< "$found"
}

group=()
for word in "$@" --; do
  if [ "$word" != -- ]; then
    group+=("$word")
  elif [ ${#group[@]} -gt 0 ]; then
    add_group "${group[@]}"
    group=()
  fi
done
[ -s "$plan" ] || fail "nothing to run: give groups of packages, or NAME: COMMAND"

cat > "$build/all.sh" <<'S'
set -u
failed=0 step=0 id=$1

# meet returns when the other node, too, has come as far: what runs on both waits for its peer only for so long.
meet() {
  local other their
  step=$((step + 1))
  [ "$TESTBED_NODES" = 2 ] || return 0
  echo "$id $step" > "$OUT/step.$TESTBED_NODE"
  until read -r other their < "$OUT/step.$((1 - TESTBED_NODE))" && [ "$other" = "$id" ] && [ "$their" -ge "$step" ]; do
    sleep 0.1
  done 2> /dev/null
}

run() { # run NAME DIRECTORY COMMAND...
  local name=$1 log=$OUT/$1.$TESTBED_NODE.log start counts=""
  cd "$2"
  shift 2
  meet
  start=$SECONDS
  if "$@" > "$log" 2>&1; then
    ! grep -q -- '^--- ' "$log" ||
      counts=", $(grep -c -- '^--- PASS' "$log") passed, $(grep -c -- '^--- SKIP' "$log") skipped"
    echo "ok    $name  $((SECONDS - start)) s$counts"
  else
    failed=1
    cat "$log"
    echo "FAIL  $name  $((SECONDS - start)) s"
  fi
}
S
{ cat "$plan"; echo 'exit $failed'; } >> "$build/all.sh"
"$here/run.sh" "${options[@]}" bash "$build/all.sh" "$build"
