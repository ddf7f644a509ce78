# Tests on an RDMA device: included by the Makefile. See lab/testbed/README.md.

TESTBED_OUT := out/testbed

.PHONY: fetch test-guest test-guests replay-rdma calibrate-rdma bench-odp

##@ Build and install
## fetch: download the Debian packages of the test bed into its cache (lab/testbed/README.md)
fetch:
	lab/testbed/fetch.sh

# Groups of gotest.sh, by name. For a change those of GUEST run, in one boot: what is the kernel's own, its counters,
# limits and errors. Conformance suites, MPI programs, a C transport and files run on the software device, and here at
# night, in the other groups.
GUEST ?= rdma watch vmmc
# Seconds, which no run comes near.
GUEST_LIMIT ?= $(if $(findstring full,$(GUEST)$(GUESTS)),5400,1800)
GUEST_rdma = -test.short '-test.skip=^TestConformance$$' ./verbs/rdma/... ./internal/cgroup
GUEST_rdma-full = -test.timeout=30m ./verbs/rdma/... ./internal/cgroup
# What userfaultfd tells of where the kernel has no guards.
GUEST_watch = '-test.run=Guards|Elsewhere|LostPages|NoHitOnce|Kind|ForOtherUsers|OnlySoMany|ClientsOfAKilled' ./vmwatch
GUEST_vmmc = -test.short '-test.run=^TestRDMA(Device|Key|Lease|ExporterIsKilled|LeavesNothing|IsReplaced)' ./comm/vmmc
# UCX's put of 1 MiB does not end on Soft-RoCE; test-vmmc-rdma measures it on the software device.
GUEST_vmmc-full = -test.timeout=60m -test.skip=EveryMeasurement ./comm/vmmc/...
GUEST_files = ./comm/files/faults
GUEST_api = api: mpishim/example/run.sh '$(abspath $(SHIM_OUT)/prefix)'
GUEST_mpi-full = mpi: $(guest_mpi) '$(TEST_MPI_RANKS)' '$(TEST_MPI_POLICIES)' $(TEST_MPI_PROGRAMS)
guest_mpi = lab/testbed/programs/run.sh '$(CURDIR)/$(SHIM_LIB)' '$(CURDIR)/$(SHIM_OUT)/tests'
# MPI's two ranks, and idle processors for their helpers.
GUEST_CPUS ?= $(if $(filter mpi%,$(GUEST)),4,2)

##@ Test
## test-guest: in a guest: a kernel's RDMA device, control groups; GUEST="rdma watch vmmc files api mpi-full"
test-guest: fetch $(if $(filter api,$(GUEST)),api-prefix) $(if $(filter mpi%,$(GUEST)),shim mpi-programs)
	mkdir -p $(TESTBED_OUT)/guest
	lab/testbed/gotest.sh -c $(GUEST_CPUS) -t $(GUEST_LIMIT) -o $(TESTBED_OUT)/guest $(foreach group,$(GUEST),-- $(GUEST_$(group)))

# Between two: for a change, transfers. Those of vmmc and of files run at night.
GUESTS ?= rdma
GUESTS_rdma = -test.short -test.run=TwoNodes ./verbs/rdma/rc
GUESTS_rdma-full = -test.run=TwoNodes ./verbs/rdma/rc
GUESTS_vmmc-full = -test.timeout=60m -test.run=TwoNodes ./comm/vmmc
GUESTS_files = -test.run=TwoNodes ./comm/files/faults

## test-guests: between two guests that lose packets, links and peers; GUESTS="rdma vmmc-full files"
test-guests: fetch
	mkdir -p $(TESTBED_OUT)/guests
	lab/testbed/gotest.sh -n 2 -t $(GUEST_LIMIT) -o $(TESTBED_OUT)/guests $(foreach group,$(GUESTS),-- $(GUESTS_$(group)))

##@ Measure
## replay-rdma: replay NAS runs in real time, registered with Soft-RoCE, in a guest
replay-rdma: fetch
	mkdir -p $(TESTBED_OUT)/replay
	$(GO) build -o $(TESTBED_OUT)/replay/nasreplay ./cmd/nasreplay
	lab/testbed/run.sh -o $(TESTBED_OUT)/replay sh -c '"$$OUT/nasreplay" compare --mode real --provider rdma --scale 0.25 --costs results/calibration/rxe-qemu-linux-6.12.json \
		results/traces/ft.B.4.pwt results/traces/mg.C.4.pwt'

##@ Write results/ (needs a quiet machine)
## calibrate-rdma: what registration costs on the test bed's device, into results/calibration
calibrate-rdma: fetch
	mkdir -p $(TESTBED_OUT)/calibrate
	$(GO) build -o $(TESTBED_OUT)/calibrate/nasreplay ./cmd/nasreplay
	lab/testbed/run.sh -o $(TESTBED_OUT)/calibrate sh -c '"$$OUT/nasreplay" calibrate --provider rdma --max-size 32M --out "$$OUT/calibration.json"'
	cp $(TESTBED_OUT)/calibrate/calibration.json results/calibration/rxe-qemu-linux-6.12.json

.PHONY: bench-files-nfs

## bench-files-nfs: the kernel's NFS server over RDMA and rcopy, in a guest (10 minutes; resumes)
bench-files-nfs: build fetch
	mkdir -p $(OUT)/bench-files-nfs
	$(GO) build -o $(OUT)/bench-files-nfs/files ./lab/bench/files
	lab/testbed/nfs.sh $(OUT)/bench-files-nfs bin/pinwheel $(OUT)/bench-files-nfs/files
	cp $(OUT)/bench-files-nfs/nfs.jsonl results/files/nfs.jsonl
	$(MAKE) --no-print-directory bench-files-page

## bench-odp: the kernel's on-demand paging compared with registrations, in a guest
bench-odp: export PINWHEEL_TESTBED_KERNEL = trixie-backports
bench-odp:
	lab/testbed/fetch.sh
	rm -rf $(TESTBED_OUT)/odp && mkdir -p $(TESTBED_OUT)/odp results/papers
	lab/testbed/gotest.sh -c 2 -t 900 -o $(TESTBED_OUT)/odp -- kernel: uname -sr -- '-test.run=^$$' -test.bench=OnDemandPaging -test.benchtime=100x ./verbs/rdma/rc
	cat $(TESTBED_OUT)/odp/kernel.0.log $(TESTBED_OUT)/odp/pinwheel-verbs-rdma-rc.0.log > results/papers/odp.txt
	awk -f lab/testbed/odp.awk results/papers/odp.txt > results/papers/odp.md
