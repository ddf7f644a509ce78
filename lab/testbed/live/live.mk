# MPI programs under Pinwheel on the software RDMA device: included by the Makefile. See lab/testbed/softverbs/README.md.

LIVE := $(OUT)/live/live
SOAK_LAUNCHES ?= 1000

.PHONY: test-live test-live-all soak-live soak-live-plain test-apps test-prometheus test-profile test-slurm $(LIVE)

$(LIVE): build softverbs
	mkdir -p $(@D)
	$(GO) build -o $@ ./lab/testbed/live

##@ Test
## test-live: unmodified MPI programs on the software RDMA device: every pair of settings
test-live: $(LIVE)
	LIVE_TEST_LIMITS=y $(GO_TEST) -count=1 ./lab/testbed/live/... ./lab/bench/live
	$(LIVE) test

## test-live-all: every combination of them, and other allocators, stopped ranks, gdb (an hour; resumes)
test-live-all: $(LIVE)
	$(LIVE) test --all

## test-apps: five applications must compute the same as without Pinwheel (5 minutes; resumes)
test-apps: $(LIVE)
	$(LIVE) apps

## test-prometheus: a real Prometheus and node_exporter scrape an MPI job
test-prometheus: build softverbs
	@$(call need,prometheus,make install-prometheus (as root))
	@$(call need,prometheus-node-exporter,make install-prometheus (as root))
	PINWHEEL_TEST_PROMETHEUS=y $(GO) test -count=1 -timeout 10m -run Prometheus -v ./lab/testbed/live

## test-profile: MPI jobs keep profiles and begin with them; killed, aborted, at the same time
test-profile: build softverbs
	PINWHEEL_TEST_PROFILE=y $(GO) test -count=1 -timeout 20m -run 'Profile|Kept|Jobs' ./lab/testbed/live

##@ Soak
## soak-live: SOAK_LAUNCHES=1000 on each MPI stack, which end in every way (resumes)
soak-live: $(LIVE)
	$(LIVE) soak --launches $(SOAK_LAUNCHES)

## soak-live-plain: the same launches without Pinwheel
soak-live-plain: $(LIVE)
	$(LIVE) soak --plain --launches $(SOAK_LAUNCHES)

##@ Test
## test-slurm: jobs on a Slurm cluster of this node, started for the test (a minute, as root)
test-slurm: build softverbs
	LIVE_TEST_SLURM=y $(GO_TEST) -count=1 -v -timeout 9m ./lab/testbed/live/slurm
