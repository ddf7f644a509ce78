# MPI programs under Pinwheel on the software RDMA device: included by the Makefile. See lab/testbed/softverbs/README.md.

LIVE := $(OUT)/live/live
SOAK_LAUNCHES ?= 1000

.PHONY: test-live test-live-all soak-live soak-live-plain test-apps test-prometheus test-profile test-slurm $(LIVE)

$(LIVE): build softverbs
	mkdir -p $(@D)
	$(GO) build -o $@ ./lab/testbed/live

## test-live: MPI programs under Pinwheel on the software RDMA device: every pair of program, policy, MPI stack and ranks
test-live: $(LIVE)
	LIVE_TEST_LIMITS=y $(GO) test -count=1 ./lab/testbed/live/... ./lab/bench/live
	$(LIVE) test

## test-live-all: every combination of them, and some with other allocators, while they are stopped, and under gdb (an hour); goes on where it was
test-live-all: $(LIVE)
	$(LIVE) test --all

## test-apps: applications with the transport's cache, without a cache and under Pinwheel: they must compute the same (five minutes); goes on where it was
test-apps: $(LIVE)
	$(LIVE) apps

## test-prometheus: a Prometheus and a node_exporter scrape "pinwheel metrics" while an MPI job runs on the software RDMA device
test-prometheus: build softverbs
	@$(call need,prometheus,make install-prometheus (as root))
	@$(call need,prometheus-node-exporter,make install-prometheus (as root))
	PINWHEEL_TEST_PROMETHEUS=y $(GO) test -count=1 -timeout 10m -run Prometheus -v ./lab/testbed/live

## test-profile: MPI jobs on the software RDMA device keep profiles, and begin with them; they are killed, abort, run at the same time
test-profile: build softverbs
	PINWHEEL_TEST_PROFILE=y $(GO) test -count=1 -timeout 20m -run 'Profile|Kept|Jobs' ./lab/testbed/live

## soak-live: SOAK_LAUNCHES=1000 on each MPI stack, which end in every way; a rank killed in every tenth; goes on where it was
soak-live: $(LIVE)
	$(LIVE) soak --launches $(SOAK_LAUNCHES)

## soak-live-plain: the same launches without Pinwheel, to know what the stacks do by themselves
soak-live-plain: $(LIVE)
	$(LIVE) soak --plain --launches $(SOAK_LAUNCHES)

## test-slurm: jobs under Pinwheel on a Slurm cluster of this node, started for the test (as root; a minute)
test-slurm: build softverbs
	LIVE_TEST_SLURM=y $(GO) test -count=1 -v -timeout 9m ./lab/testbed/live/slurm
