# What targets need of Debian, and install-* installs, as root: included by the Makefile.

PACKAGES_mpi := openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran g++
PACKAGES_softverbs := libibverbs-dev librdmacm-dev ucx-utils perftest rdmacm-utils libfabric-bin iproute2
PACKAGES_slurm := slurm-wlm munge
PACKAGES_ucx := libucx-dev
PACKAGES_libfabric := libfabric-dev
PACKAGES_apps := openmpi-bin libopenmpi-dev libfftw3-mpi-dev gromacs openfoam petsc-dev libpetsc3.18-dev-examples pkg-config \
	quantum-espresso python3-mpi4py gdb libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0
PACKAGES_prometheus := prometheus prometheus-node-exporter
PACKAGES_packaging := debhelper lintian mmdebstrap rpm rpmlint abigail-tools jq environment-modules lua-filesystem lua-json \
	lua-posix lua-term lua5.3 tcl openmpi-bin libopenmpi-dev libucx0 podman crun
PACKAGES_bench-files := nginx-light curl rsync
PACKAGES_bench-live := lammps
PACKAGES_docs := mkdocs
PACKAGES_ci := $(PACKAGES_mpi) $(PACKAGES_softverbs) $(PACKAGES_ucx) $(PACKAGES_libfabric) pkg-config
PACKAGES_nightly := $(sort $(PACKAGES_ci) $(PACKAGES_slurm) $(PACKAGES_apps) $(PACKAGES_prometheus) $(PACKAGES_packaging) $(PACKAGES_docs))

INSTALLS := mpi softverbs slurm ucx libfabric apps prometheus packaging bench-files bench-live docs ci nightly

.PHONY: $(INSTALLS:%=install-%)

##@ Install what targets need (Debian, as root)
## install-mpi: Open MPI, MPICH and compilers, for the targets that name MPI
## install-softverbs: what the software RDMA device and its tests need, and install-mpi
## install-slurm: what test-slurm needs, and install-mpi
## install-ucx: headers of UCX, for test-stale and bench-peers
## install-libfabric: headers of libfabric, for test-stale-libfabric
## install-apps: the applications of test-apps; mpi4py, gdb and allocators for test-live-all
## install-prometheus: what test-prometheus needs, without its services
## install-packaging: what makes and tests packages
## install-bench-files: nginx, curl and rsync, for bench-files
## install-bench-live: LAMMPS, for bench-live
## install-docs: MkDocs, for docs
## install-ci: all that .ci/run needs
## install-nightly: all that .ci/nightly needs
$(INSTALLS:%=install-%): install-%:
	@installed=$$(dpkg-query -W -f '$${db:Status-Status}\n' $(PACKAGES_$*) 2>/dev/null | grep -cx installed || true); \
	[ "$$installed" -lt $(words $(PACKAGES_$*)) ] || exit 0; \
	apt-get update -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 $(PACKAGES_$*); \
	for s in $(filter $(PACKAGES_prometheus),$(PACKAGES_$*)); do \
		service $$s stop >/dev/null 2>&1 || true; \
		update-rc.d $$s disable; \
		if command -v systemctl >/dev/null; then systemctl disable --quiet $$s; fi; \
	done
