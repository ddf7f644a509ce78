# Tests on an RDMA device: included by the Makefile. See testbed/README.md.

TESTBED_OUT := out/testbed
RDMA_PACKAGES := ./verbs/rdma/... ./regcache ./replay

.PHONY: fetch test-rdma test-rdma-2node replay-rdma calibrate-rdma

## fetch: download the Debian packages of the test bed into its cache (see testbed/README.md)
fetch:
	testbed/fetch.sh

## test-rdma: the tests that need a device or control groups of version 2, in a guest with Soft-RoCE
test-rdma: fetch
	mkdir -p $(TESTBED_OUT)/1node
	testbed/gotest.sh -t 600 -o $(TESTBED_OUT)/1node -- -test.short $(RDMA_PACKAGES) ./internal/cgroup

## test-rdma-2node: RDMA between two guests
test-rdma-2node: fetch
	mkdir -p $(TESTBED_OUT)/2node
	testbed/gotest.sh -n 2 -t 600 -o $(TESTBED_OUT)/2node -- -test.run=TwoNodes ./verbs/rdma/rc

## replay-rdma: replay NAS traces in real time with a Soft-RoCE device registering
replay-rdma: fetch
	mkdir -p $(TESTBED_OUT)/replay
	$(GO) build -o $(TESTBED_OUT)/replay/nasreplay ./cmd/nasreplay
	testbed/run.sh -o $(TESTBED_OUT)/replay sh -c '"$$OUT/nasreplay" compare --mode real --provider rdma --scale 0.25 --costs results/calibration/rxe-qemu-linux-6.12.json \
		results/traces/ft.B.4.pwt results/traces/mg.C.4.pwt'

## calibrate-rdma: measure what the device of the test bed takes, into results/calibration (needs an idle machine)
calibrate-rdma: fetch
	mkdir -p $(TESTBED_OUT)/calibrate
	$(GO) build -o $(TESTBED_OUT)/calibrate/nasreplay ./cmd/nasreplay
	testbed/run.sh -o $(TESTBED_OUT)/calibrate sh -c '"$$OUT/nasreplay" calibrate --provider rdma --max-size 32M --out "$$OUT/calibration.json"'
	cp $(TESTBED_OUT)/calibrate/calibration.json results/calibration/rxe-qemu-linux-6.12.json
