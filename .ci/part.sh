# Sourced by run and nightly: what they run, part by part, each a target of make.

goes_on="" # not empty: after a part that has failed, too

# record FILE: where the seconds of each part that has passed are kept. Those that fail are in FILE.failed.
record() {
	times=$1
	mkdir -p "$(dirname "$times")"
	touch "$times"
	: >"$times.failed"
}

# part TARGET [VARIABLE=...]: runs it, unless the record has it.
part() {
	local start=$SECONDS
	! cut -f 2 "$times" | grep -qxF -- "$*" || return 0
	echo "== make $*"
	make --no-print-directory "$@" || {
		echo "== make $*: failed after $((SECONDS - start)) s" >&2
		echo "$*" >>"$times.failed"
		[ -n "$goes_on" ] || exit 1
		return 0
	}
	echo "== make $*: $((SECONDS - start)) s"
	printf '%s\t%s\n' $((SECONDS - start)) "$*" >>"$times"
}

# beside "TARGET [VARIABLE=...]"...: parts that run one after the other beside what follows, until join. They share no
# output with it, and no value has a space.
beside() {
	set -m # a process group of their own
	(for target; do part $target; done) >"$times.beside" 2>&1 &
	lane=$!
	set +m
	trap 'kill -TERM -- "-$lane" 2>/dev/null || true' EXIT
}

# join waits for the parts of beside, and prints what they have printed.
join() {
	local status=0
	wait "$lane" || status=$?
	trap - EXIT
	cat "$times.beside"
	[ "$status" = 0 ] || exit "$status"
}

# What git sees in the working tree, with checksums: parts write to out/ and bin/ only.
tree() {
	git status --porcelain
	git ls-files -z --modified --others --exclude-standard | xargs -0r sha1sum -- 2>&1 || true
}

# finish TREE: the record. Parts that have failed, or have changed what tree said before, are an error.
finish() {
	local changed
	changed=$(diff <(echo "$1") <(echo "$(tree)") | awk '/^[<>]/ { print $NF }' | sort -u) || true
	awk -F'\t' '{ printf "%5d s  %s\n", $1, $2; sum += $1 } END { printf "%5d s  together\n", sum }' "$times"
	[ -z "$changed" ] ||
		echo "$0: parts may write to out/ and bin/ only, but changed or made these files:" $changed >&2
	sed 's/^/failed: make /' "$times.failed" >&2
	[ -z "$changed" ] && [ ! -s "$times.failed" ]
}
