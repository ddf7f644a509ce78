#!/bin/sh
# Compares the hit path with UCX's. Needs libucx-dev (make install-ucx); without it, ours are measured alone.
set -eu
cd "$(dirname "$0")/../../.."
header=/usr/include/ucs/memory/rcache.h
mkdir -p out/bin
go build -o out/bin/ ./lab/bench/peers/gopeer ./lab/bench/peers/cpeer
if [ -e $header ]; then
	${CC:-cc} -O2 -o out/bin/ucxpeer lab/bench/peers/ucx/ucx.c -lucs -lucm -lpthread
else
	rm -f out/bin/ucxpeer
	echo "bench-peers: no UCX to compare with: make install-ucx (as root)" >&2
fi
exec go run ./lab/bench/peers -bin out/bin -out out/bench-peers.jsonl "$@"
