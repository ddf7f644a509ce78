# Tests on an RDMA device: included by the Makefile. See testbed/README.md.

TESTBED_OUT := out/testbed
RDMA_PACKAGES := ./verbs/rdma/... ./regcache ./replay

.PHONY: fetch test-rdma test-rdma-2node test-vmmc-rxe test-vmmc-2node test-vmmc-guests replay-rdma calibrate-rdma

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

# What vmmc does with a device; all the rest does not depend on one.
VMMC_RXE_TESTS := ^TestRDMA|^TestConformance$$/^rdma$$|^TestPublishIsNeverOvertaken$$/^rdma$$|^Test(Ex|Im)porterIsKilledAtEachStep$$/^rdma$$
# Of those between two guests, what needs both, in a minute or two.
VMMC_2NODE_TESTS := ^TestTwoNodes$$/rdma$$/(delivered_in_order|handler_is_called|nothing_lands|after_Flush|importer_that_is_killed|acknowledgements|silent)

## test-vmmc-rxe: vmmc over Soft-RoCE: its conformance suite, and what is RDMA's own
test-vmmc-rxe: fetch
	mkdir -p $(TESTBED_OUT)/vmmc
	testbed/gotest.sh -t 600 -o $(TESTBED_OUT)/vmmc -- -test.short '-test.run=$(VMMC_RXE_TESTS)' ./vmmc

## test-vmmc-2node: vmmc between two guests, by RDMA: order, Unexport, automatic update, lost packets, cut links, killed peers
test-vmmc-2node: fetch
	mkdir -p $(TESTBED_OUT)/vmmc2
	testbed/gotest.sh -n 2 -t 600 -o $(TESTBED_OUT)/vmmc2 -- -test.short '-test.run=$(VMMC_2NODE_TESTS)' ./vmmc

## test-vmmc-guests: all of vmmc in a guest, and all of it between two, also by TLS, with a thousand rounds of random writers
test-vmmc-guests: fetch
	mkdir -p $(TESTBED_OUT)/vmmc-all $(TESTBED_OUT)/vmmc2-all
	testbed/gotest.sh -t 3600 -o $(TESTBED_OUT)/vmmc-all ./vmmc/...
	testbed/gotest.sh -n 2 -t 3600 -o $(TESTBED_OUT)/vmmc2-all -- -test.run=TwoNodes ./vmmc

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

.PHONY: test-files-guest test-files-2node

## test-files-guest: in a guest, serving files from and to a disk that fails, and what the kernel counts of files served by RDMA
test-files-guest: fetch
	mkdir -p $(TESTBED_OUT)/files
	testbed/gotest.sh -t 600 -o $(TESTBED_OUT)/files ./files/faults

## test-files-2node: files between two guests: lost packets, RDMA that fails, a link that is down
test-files-2node: fetch
	mkdir -p $(TESTBED_OUT)/files2
	testbed/gotest.sh -n 2 -t 600 -o $(TESTBED_OUT)/files2 -- -test.run=TwoNodes ./files/faults

.PHONY: bench-files-nfs

## bench-files-nfs: the kernel's NFS server over RDMA and rcopy beside pinwheel serve, and registration, in a guest, into results/files/nfs.md (10 minutes; goes on where it was)
bench-files-nfs: build fetch
	mkdir -p $(OUT)/bench-files-nfs
	$(GO) build -o $(OUT)/bench-files-nfs/files ./bench/files
	testbed/nfs.sh $(OUT)/bench-files-nfs bin/pinwheel $(OUT)/bench-files-nfs/files
	cp $(OUT)/bench-files-nfs/nfs.jsonl results/files/nfs.jsonl
	$(MAKE) --no-print-directory bench-files-page
