#!/bin/bash
# deb.sh DIRECTORY: installs the Debian packages that are in the directory in a clean root directory of this Debian, uses them
# there as a normal user, and removes them again: nothing may be left. As root.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. lab/testbed/packages/job.sh

debs=$(cd "$1" && pwd)
. /etc/os-release
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT

mmdebstrap --quiet --variant=minbase --include=openmpi-bin,environment-modules,gcc,libc6-dev,pkg-config,libibverbs-dev \
	"$VERSION_CODENAME" "$root"
chmod 755 "$root"

# inside COMMAND...: in the root directory, with its own /proc. What it leaves running ends with it.
inside() {
	# shellcheck disable=SC2016 # of the inner shell
	unshare --mount --pid --fork --kill-child bash -c '
		mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' \
		"$root" "$@"
}

# What there is but for caches, logs and the package manager's own records.
names() {
	find "$root" -xdev \( -path "$root/var/cache" -o -path "$root/var/log" -o -path "$root/var/lib/dpkg" -o \
		-path "$root/var/lib/apt" -o -path "$root/tmp" -o -path "$root/packages" \) -prune -o -print | sort
}

before=$(names)
mkdir "$root/packages"
cp "$debs"/*.deb "$root/packages/"
export DEBIAN_FRONTEND=noninteractive
inside sh -c 'apt-get install -qq --no-install-recommends /packages/*.deb' >"$root/tmp/said" 2>&1 || fail "installing: $(cat "$root/tmp/said")"

wanted=$(find "$root"/etc/systemd "$root"/usr/lib/systemd "$root"/var/lib/systemd -path '*.wants/*pinwheel*')
[ -z "$wanted" ] || fail "a unit is on, and they should be off until somebody enables them:" $wanted

# A job, by the modulefile.
mkdir -p "$root/tmp/device" "$root/tmp/stats"
chmod 777 "$root/tmp/stats"
cp -r out/softverbs/lib out/softverbs/sys "$root/tmp/device/"
mpicc.openmpi -O2 -o "$root/tmp/halo" lab/testbed/programs/halo.c
cat >"$root/tmp/job" <<'END'
. /usr/share/modules/init/bash
module load pinwheel
[ -z "${LD_PRELOAD-}" ] || echo "LD_PRELOAD of the shell is $LD_PRELOAD"
mpirun -x LD_PRELOAD="$DEVICE_PRELOAD" -n 2 /tmp/halo
END
on_device /tmp/device
said=$(inside "${as_user[@]}" DEVICE_PRELOAD="$preload_of_device" PINWHEEL_STATS=/tmp/stats/stats.%r.json \
	timeout -k 5 120 bash /tmp/job 2>&1) || fail "the job: status $?: $said"
[ "$said" = "halo: 2 ranks, data right" ] || fail "the job said $said"
judge "$root/tmp/stats"

# A transport in C, and one in Go.
# shellcheck disable=SC2016 # of the inner shell
said=$(inside "${as_user[@]}" timeout -k 5 120 sh -ec 'cd "$(mktemp -d)"
	gcc /usr/share/doc/pinwheel/examples/transport.c $(pkg-config --cflags --libs pinwheel) -libverbs -o transport
	./transport 20 8' 2>&1) || fail "the example transport: status $?: $said"
grep -q '^data right' <<<"$said" || fail "the example transport said $said"
path=$(go list -m)
mkdir "$root/tmp/go"
(
	cd "$root/tmp/go"
	printf 'package main\n\nimport _ "%s"\n\nfunc main() {}\n' "$path" >main.go
	go mod init example >/dev/null 2>&1
	go mod edit -replace "$path=$root/usr/share/gocode/src/$path"
	GOFLAGS=-mod=mod go build -o transport .
) || fail "the Go package can't be used from /usr/share/gocode"

inside apt-get purge -qq pinwheel libpinwheel0 libpinwheel-dev pinwheel-doc golang-pinwheel-dev >"$root/tmp/said" 2>&1 ||
	fail "removing: $(cat "$root/tmp/said")"
left=$(comm -13 <(echo "$before") <(names))
[ -z "$left" ] || fail "left after the packages were removed:" $left
echo "installed, used and removed: $(cd "$debs" && echo *.deb)"
