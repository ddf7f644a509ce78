#!/bin/bash
# The compiler of cross.sh, with the libraries beside it: a C compiler for arm64 that needs nothing installed.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
in_layer exec aarch64-linux-gnu-gcc --sysroot="$tools" "$@"
