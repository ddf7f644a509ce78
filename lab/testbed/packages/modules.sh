#!/bin/bash
# modules.sh: an MPI job of a normal user on the software RDMA device after "module load pinwheel", with Debian's
# environment-modules and with its Lmod. "make install" has written the modulefiles, "make uninstall" removes all. As root.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. lab/testbed/packages/job.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
make --no-print-directory -s install PREFIX="$tmp/prefix" DESTDIR= >/dev/null
cp -r out/softverbs/lib out/softverbs/sys "$tmp/"
mpicc.openmpi -O2 -o "$tmp/halo" lab/testbed/programs/halo.c

# An MPI library with a module of its own.
mkdir -p "$tmp/mpi/bin" "$tmp/modules" "$tmp/nothing"
for l in mpirun mpiexec; do ln -s "$(command -v $l.openmpi)" "$tmp/mpi/bin/$l"; done
printf '#%%Module1.0\nprepend-path PATH %s\n' "$tmp/mpi/bin" >"$tmp/modules/some-mpi"

# Lmod can't be installed beside environment-modules. Its files name the directory that they are installed in.
(cd "$tmp" && apt-get download -qq -o APT::Sandbox::User=root lmod && dpkg -x lmod_*.deb "$tmp/lmod")
grep -rlIZ /usr/share/lmod "$tmp/lmod" | xargs -0 sed -i "s|/usr/share/lmod|$tmp/lmod/usr/share/lmod|g"

cat >"$tmp/session" <<'END'
. "$INIT"
module use "$DIR/modules" "$DIR/prefix/share/modulefiles"
(PATH=$DIR/nothing; module load pinwheel) 2>&1 | grep -q "load the MPI library first" || echo "no launcher: no word of it"
module load some-mpi pinwheel
[ -z "${LD_PRELOAD-}" ] || echo "LD_PRELOAD of the shell is $LD_PRELOAD"
man -w pinwheel 2>/dev/null | grep -q "^$DIR/prefix" || echo "man finds no pinwheel(1)"
for launcher in mpirun mpiexec; do
	PINWHEEL_STATS=$DIR/$OUT/$launcher/stats.%r.json $launcher -x LD_PRELOAD="$DEVICE_PRELOAD" -n 2 "$DIR/halo"
done
module unload pinwheel
[[ $PATH != *pinwheel* && $PATH != "$DIR"/prefix* ]] || echo "after unload, PATH is $PATH"
PINWHEEL_STATS=$DIR/$OUT/after/stats.%r.json mpirun -x LD_PRELOAD="$DEVICE_PRELOAD" -n 2 "$DIR/halo"
END

on_device "$tmp"
for tool in environment-modules lmod; do
	case $tool in
	environment-modules) init=/usr/share/modules/init/bash ;;
	lmod) init=$tmp/lmod/usr/share/lmod/lmod/init/bash ;;
	esac
	mkdir -p "$tmp/$tool"/{mpirun,mpiexec,after}
	chmod 777 "$tmp/$tool"/*
	said=$("${as_user[@]}" INIT="$init" DIR="$tmp" OUT="$tool" DEVICE_PRELOAD="$preload_of_device" PATH=/usr/bin:/bin \
		timeout -k 5 120 bash "$tmp/session" 2>&1) || fail "$tool: status $?: $said"
	[ "$said" = "$(yes 'halo: 2 ranks, data right' | head -n 3)" ] || fail "$tool: said $said"
	judge "$tmp/$tool/mpirun"
	judge "$tmp/$tool/mpiexec"
	[ -z "$(ls "$tmp/$tool/after")" ] || fail "$tool: after unload, a job still ran under Pinwheel"
	echo "$tool: jobs under Pinwheel by mpirun and mpiexec, and none after unload"
done

make --no-print-directory -s uninstall PREFIX="$tmp/prefix" DESTDIR=
left=$(find "$tmp/prefix" ! -type d -o -path '*pinwheel*')
[ -z "$left" ] || fail "make uninstall leaves $left"
