#!/bin/bash
# Runs the commands of pages as they stand there: in a fresh clone of the last commit, with an empty home, and as nobody if
# root runs it. Commands are indented by four spaces; what is fenced is none.
#
#   try.sh PAGE...
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT # the Go command writes modules without permission to remove them
git clone --quiet --no-hardlinks . "$dir/clone"
mkdir "$dir/home"
awk 'FNR == 1 { fenced = 0; code = 0; blank = 1 }
  /^```/ { fenced = !fenced }
  { code = !fenced && /^    / && (blank || code); blank = /^$/ }
  code { print substr($0, 5) }' "$@" >"$dir/commands"
[ -s "$dir/commands" ] || { echo "try.sh: no commands in $*" >&2; exit 1; }
as=()
if [ "$(id -u)" = 0 ]; then
  chown -R nobody: "$dir"
  as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
cd "$dir/clone"
"${as[@]}" env -i HOME="$dir/home" PATH="$PATH" GOPROXY="$(go env GOPROXY)" GOTOOLCHAIN="$(go env GOTOOLCHAIN)" \
  timeout -k 10 1800 bash -euxo pipefail "$dir/commands"
