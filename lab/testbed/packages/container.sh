#!/bin/bash
# container.sh TARBALL: builds the images of packaging/container of the source tarball with Podman, and uses them: the watch
# service with the rights that packaging/kubernetes gives it, an MPI job of a normal user on the software RDMA device, and
# the metrics of that job from a second container. No registry is asked: the images below them are made of Debian's
# packages and of this Go. Nothing is left in the storage of Podman. As root.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. lab/testbed/packages/job.sh

# What is mounted here is seen here only. crun refuses the hybrid hierarchy of control groups.
[ -n "${PINWHEEL_CONTAINER_TEST-}" ] || PINWHEEL_CONTAINER_TEST=y exec unshare --mount "$0" "$@"
! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing # as systemd has it

tarball=$(realpath "$1")
. /etc/os-release
bases=out/containers
mkdir -p "$bases"
tmp=$(mktemp -d /var/tmp/pinwheel-containers.XXXXXX) # on a disk, for the storage of images
chmod 755 "$tmp"

pod() { podman --root "$tmp/storage" --runroot "$tmp/run-root" --storage-driver overlay --cgroup-manager cgroupfs "$@"; }
ended() {
	pod rm --all --force --time 0 >/dev/null 2>&1 || true
	rm -rf --one-file-system "$tmp"
}
trap ended EXIT

# Podman's own defaults are more than a root without CAP_SYS_RESOURCE may set.
limits=(--ulimit "nofile=1024:$(ulimit -Hn)" --ulimit "nproc=4096:4096")
network=none
# start OPTION... IMAGE ARGUMENT...: a container with no capability but those of the options.
start() { pod run "${limits[@]}" --network $network --cap-drop ALL --security-opt no-new-privileges "$@"; }

# base NAME VARIANT PACKAGES: an image of Debian's packages.
base() {
	local file=$bases/$1-$VERSION_CODENAME.tar
	[ -s "$file" ] || { mmdebstrap --quiet --variant="$2" --include="$3" "$VERSION_CODENAME" "$file.partial.tar" && mv "$file.partial.tar" "$file"; }
	[ "$1" != go ] || {
		cp "$file" "$tmp/go.tar"
		tar --append --file "$tmp/go.tar" --transform 's,^\.,./usr/local/go,' -C "$(go env GOROOT)" .
		file=$tmp/go.tar
	}
	pod import --quiet --change "ENV PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local" "$file" "pinwheel-test/$1" >"$tmp/said" 2>&1 ||
		fail "podman import of $1: $(cat "$tmp/said")"
}
base small extract base-files,libc6,netbase
base debian minbase base-files
base go minbase gcc,libc6-dev,make
rm -f "$tmp/go.tar"

# The packages of one image come by the network of this machine; the build itself does without.
mkdir "$tmp/source"
tar -xzf "$tarball" -C "$tmp/source" --strip-components 1
for target in pinwheel mpi; do
	from=none
	[ $target = pinwheel ] || from=host
	pod build "${limits[@]}" --network $from --volume "$(go env GOCACHE):/root/.cache/go-build" \
		--build-arg GO_IMAGE=localhost/pinwheel-test/go --build-arg DEBIAN_IMAGE=localhost/pinwheel-test/debian \
		--build-arg SMALL_IMAGE=localhost/pinwheel-test/small --target $target --tag pinwheel-test/image-$target \
		--file packaging/container/Containerfile "$tmp/source" >"$bases/$target.log" 2>&1 ||
		{ tail -n 20 "$bases/$target.log" >&2; fail "podman build of $target failed ($bases/$target.log)"; }
done
small=localhost/pinwheel-test/image-pinwheel
mpi=localhost/pinwheel-test/image-mpi

# The small one: no shell, no package manager; the commands work.
read -r version _ <"$tmp/source/.tarball-version"
said=$(start --rm --read-only $small --version) || fail "the small image: status $?"
[ "$said" = "pinwheel $version" ] || fail "the small image says $said, not pinwheel $version"
[ "$(start --rm --read-only --entrypoint /usr/bin/nasreplay $small --version)" = "nasreplay $version" ] || fail "the small image has no nasreplay"
! start --rm --entrypoint /bin/sh $small -c true 2>/dev/null || fail "the small image has a shell"

# allow NAME...: a seccomp profile that allows these, too, as docs/containers.md makes it.
allow() {
	jq --args '($ARGS.positional) as $names | (.syscalls[] | select(.action == "SCMP_ACT_ERRNO").names) -= $names |
		.syscalls += [{names: $names, action: "SCMP_ACT_ALLOW"}]' "$@" </usr/share/containers/seccomp.json
}
allow bpf perf_event_open >"$tmp/watchd.json"
allow io_uring_setup io_uring_enter io_uring_register >"$tmp/device.json" # the software device pins by them

# The watch service.
mkdir "$tmp/run"
start --detach --name watchd --read-only --user 0:0 --cap-add BPF --cap-add PERFMON --security-opt seccomp="$tmp/watchd.json" \
	--volume /sys/kernel/tracing:/sys/kernel/tracing:ro --volume "$tmp/run:/run/pinwheel" $small watchd >/dev/null
until_or() { # until_or WHAT COMMAND...: waits for the command to succeed
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "after two minutes, $what: $(tail -n 3 "$tmp/said"; pod logs --latest 2>&1 | tail -n 3)"
		sleep .2
	done
}
until_or "the watch service in its container has made no socket" test -S "$tmp/run/watch.sock"

# A job: as the user of the image, with what docs/containers.md adds.
mkdir -p "$tmp/device" "$tmp/stats"
chmod 777 "$tmp/stats"
cp -r out/softverbs/lib out/softverbs/sys "$tmp/device/"
mpicc.openmpi -O2 -o "$tmp/device/halo" lab/testbed/programs/halo.c
on_device /device
names=(LD_LIBRARY_PATH SYSFS_PATH "${!UCX_@}" "${!OMPI_MCA_@}")
job=(--cap-add IPC_LOCK --security-opt seccomp="$tmp/device.json" --volume "$tmp/run:/run/pinwheel:ro"
	--volume "$tmp/device:/device:ro" "${names[@]/#/--env=}" $mpi
	pinwheel run -- mpirun -x "LD_PRELOAD=$preload_of_device" -n 2 /device/halo)
said=$(start --rm --volume "$tmp/stats:/stats" --env PINWHEEL_STATS=/stats/stats.%r.json "${job[@]}" 100 2>&1) || fail "the job: status $?: $said"
[ "$said" = "halo: 2 ranks, data right" ] || fail "the job said $said"
judge "$tmp/stats"
watch=$(pod logs watchd 2>&1 | sed -n 's/.*watches by \([a-z]*\), and serves.*/\1/p')
case $watch in fentry | tps) ;; *) fail "the watch service is not as good as outside of a container: $(pod logs watchd 2>&1)" ;; esac
[ "$(jq -r .watch "$tmp/stats"/stats.*.json | uniq)" = "$watch, by the watch service" ] ||
	fail "the ranks were watched by $(jq -c .watch "$tmp/stats"/stats.*.json), not by the service: $(pod logs watchd 2>&1)"

# A long one, and its metrics by another container in its namespaces.
start --detach --name job "${job[@]}" 10000000 >/dev/null
ranks() {
	[ "$(network=container:job start --rm --read-only --user 1000:1000 --cap-add IPC_LOCK --pid container:job $small metrics 2>&1 |
		tee "$tmp/said" | grep -c '^pinwheel_rank_info{.*program="halo"')" = 2 ]
}
until_or "another container sees no metrics of the job's ranks" ranks
pod rm --force --time 0 job >/dev/null

# A signal ends the service, and its socket.
pod stop --time 60 watchd >/dev/null
[ "$(pod inspect --format '{{.State.ExitCode}}' watchd)" = $((128 + 15)) ] || fail "the watch service did not end by SIGTERM: $(pod logs watchd 2>&1)"
[ ! -e "$tmp/run/watch.sock" ] || fail "the watch service has left its socket"
pod images --format '{{.Repository}} {{.Size}}' | grep /image-
echo "built, and used in containers: the watch service, a job of two ranks, metrics"
