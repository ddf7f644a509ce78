#!/bin/sh
# Compares the hit path with UCX's. Needs libucx-dev (Debian, Ubuntu), which it
# installs if it may; without it, ours are measured alone.
set -eu
cd "$(dirname "$0")/../.."
header=/usr/include/ucs/memory/rcache.h
if [ ! -e $header ] && command -v apt-get >/dev/null; then
	if [ "$(id -u)" = 0 ]; then
		apt-get update -q && apt-get install -q -y libucx-dev || true
	elif command -v sudo >/dev/null; then
		sudo -n apt-get install -q -y libucx-dev || true
	fi
fi
mkdir -p out/bin
go build -o out/bin/ ./bench/peers/gopeer ./bench/peers/cpeer
if [ -e $header ]; then
	${CC:-cc} -O2 -o out/bin/ucxpeer bench/peers/ucx/ucx.c -lucs -lucm -lpthread
else
	rm -f out/bin/ucxpeer
	echo "bench-peers: no UCX to compare with; install libucx-dev" >&2
fi
exec go run ./bench/peers -bin out/bin -out out/bench-peers.jsonl "$@"
