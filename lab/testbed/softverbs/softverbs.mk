# A software RDMA device for the processes of one machine: included by the Makefile. See lab/testbed/softverbs/README.md.

SOFTVERBS := lab/testbed/softverbs
SOFTVERBS_OUT := out/softverbs
SOFTVERBS_LIB := $(SOFTVERBS_OUT)/lib
SOFTVERBS_BUILD := $(SOFTVERBS_OUT)/build
SOFTVERBS_CFLAGS := -O2 -g -fPIC -Wall -Wextra -Wno-missing-field-initializers -Werror -fvisibility=hidden -pthread
# Never unloaded: each has a thread, and MPI libraries close what they have opened.
SOFTVERBS_LDFLAGS := -shared -pthread -Wl,-z,defs -Wl,-z,nodelete
SOFTVERBS_OBJECTS := $(patsubst $(SOFTVERBS)/%.c,$(SOFTVERBS_BUILD)/%.o,$(wildcard $(SOFTVERBS)/*.c))
SOFTVERBS_TESTS := $(patsubst $(SOFTVERBS)/tests/%.c,$(SOFTVERBS_BUILD)/test-%,$(wildcard $(SOFTVERBS)/tests/*.c $(SOFTVERBS)/tests/inner/*.c))
SOFTVERBS_CM_OBJECTS := $(patsubst $(SOFTVERBS)/%.c,$(SOFTVERBS_BUILD)/%.o,$(wildcard $(SOFTVERBS)/cm/*.c))
SOFTVERBS_LIBS := $(SOFTVERBS_LIB)/librdmacm.so.1 $(SOFTVERBS_LIB)/libibverbs.so.1
# The library whose symbol versions ours has.
softverbs_installed = $(shell /sbin/ldconfig -p | awk '$$1 == "$(1)" { print $$NF; exit }')
softverbs_header = @test -e /usr/include/$(1) || { echo "make: <$(1)> is missing: apt-get install $(2)" >&2; exit 1; }

.PHONY: softverbs test-softverbs test-softverbs-device test-softverbs-go test-vmmc-rdma bench-vmmc-rdma \
	test-files-rdma test-files-fair test-files-full test-softverbs-perftest

##@ Build and install
## softverbs: the software RDMA device: libibverbs.so.1 and librdmacm.so.1, into out/softverbs/lib
softverbs: $(SOFTVERBS_LIBS) $(SOFTVERBS_LIB)/softverbs-preload.so $(SOFTVERBS_OUT)/bin/rdma $(SOFTVERBS_OUT)/sys

$(SOFTVERBS_BUILD)/%.o: $(SOFTVERBS)/%.c $(SOFTVERBS)/sv.h | tools
	$(call softverbs_header,infiniband/verbs.h,libibverbs-dev)
	mkdir -p $(@D)
	gcc $(SOFTVERBS_CFLAGS) -c -o $@ $<

$(SOFTVERBS_BUILD)/cm/%.o: $(SOFTVERBS)/cm/%.c $(SOFTVERBS)/cm/cm.h | tools
	$(call softverbs_header,rdma/rdma_cma.h,librdmacm-dev)
	mkdir -p $(@D)
	gcc $(SOFTVERBS_CFLAGS) -c -o $@ $<

$(SOFTVERBS_LIB)/libibverbs.so.1: $(SOFTVERBS_OBJECTS) $(SOFTVERBS)/symbols.sh
	mkdir -p $(SOFTVERBS_LIB)
	cd $(SOFTVERBS_BUILD) && bash "$(CURDIR)/$(SOFTVERBS)/symbols.sh" $(call softverbs_installed,libibverbs.so.1) $(notdir $(SOFTVERBS_OBJECTS)) && gcc -O2 -fPIC -w -c rest.c
	gcc $(SOFTVERBS_LDFLAGS) -Wl,-soname,libibverbs.so.1 -Wl,--version-script=$(SOFTVERBS_BUILD)/lib.map -o $@ $(SOFTVERBS_OBJECTS) $(SOFTVERBS_BUILD)/rest.o

$(SOFTVERBS_LIB)/librdmacm.so.1: $(SOFTVERBS_CM_OBJECTS) $(SOFTVERBS)/symbols.sh $(SOFTVERBS_LIB)/libibverbs.so.1
	cd $(SOFTVERBS_BUILD)/cm && bash "$(CURDIR)/$(SOFTVERBS)/symbols.sh" $(call softverbs_installed,librdmacm.so.1) $(notdir $(SOFTVERBS_CM_OBJECTS)) && gcc -O2 -fPIC -w -c rest.c
	gcc $(SOFTVERBS_LDFLAGS) -Wl,-soname,librdmacm.so.1 -Wl,--version-script=$(SOFTVERBS_BUILD)/cm/lib.map -o $@ $(SOFTVERBS_CM_OBJECTS) $(SOFTVERBS_BUILD)/cm/rest.o $(SOFTVERBS_LIB)/libibverbs.so.1

$(SOFTVERBS_LIB)/softverbs-preload.so: $(SOFTVERBS)/tools/preload.c
	mkdir -p $(@D)
	gcc $(SOFTVERBS_CFLAGS) -fvisibility=default -shared -o $@ $< -ldl

$(SOFTVERBS_OUT)/bin/rdma: $(SOFTVERBS)/tools/rdma.c $(SOFTVERBS_OBJECTS)
	mkdir -p $(@D)
	gcc $(SOFTVERBS_CFLAGS) -I$(SOFTVERBS) -o $@ $(SOFTVERBS)/tools/rdma.c $(SOFTVERBS_OBJECTS)

# What programs read below /sys of a device: SYSFS_PATH leads libibverbs, and rc, here.
$(SOFTVERBS_OUT)/sys:
	mkdir -p $@/class/infiniband/sv0/ports/1/gids
	echo fe80:0000:0000:0000:0200:0000:0000:5673 > $@/class/infiniband/sv0/ports/1/gids/0

$(SOFTVERBS_BUILD)/test-%: $(SOFTVERBS)/tests/%.c $(wildcard $(SOFTVERBS)/tests/*.h) $(SOFTVERBS_LIBS)
	gcc $(SOFTVERBS_CFLAGS) -o $@ $< -Wl,--as-needed $(SOFTVERBS_LIBS)

# Those that look inside are linked with the device's own files.
$(SOFTVERBS_BUILD)/test-inner/%: $(SOFTVERBS)/tests/inner/%.c $(SOFTVERBS)/tests/check.h $(SOFTVERBS)/sv.h $(SOFTVERBS_OBJECTS)
	mkdir -p $(@D)
	gcc $(SOFTVERBS_CFLAGS) -o $@ $< $(SOFTVERBS_OBJECTS)

##@ Test
## test-softverbs: the software RDMA device, and verbs/rdma on it
test-softverbs: test-softverbs-device test-softverbs-go test-softverbs-api

.PHONY: test-softverbs-api

# A C transport, compiled as a user does.
test-softverbs-api: softverbs api-prefix
	$(ON_SOFTVERBS) mpishim/example/run.sh '$(abspath $(SHIM_OUT)/prefix)'

test-softverbs-device: softverbs $(SOFTVERBS_TESTS)
	@for t in $(SOFTVERBS_TESTS); do for engine in 0 1; do \
		SOFTVERBS_ENGINE=$$engine LD_LIBRARY_PATH=$(SOFTVERBS_LIB) timeout 120 $$t || { echo "FAIL $$t, engine $$engine" >&2; exit 1; }; \
	done; done

# Programs, and Go's tests, on the device.
ON_SOFTVERBS = PATH="$(CURDIR)/$(SOFTVERBS_OUT)/bin:$$PATH" SYSFS_PATH="$(CURDIR)/$(SOFTVERBS_OUT)/sys" LD_LIBRARY_PATH="$(CURDIR)/$(SOFTVERBS_LIB)"
# UCX takes the device, too. The name alone, found by LD_LIBRARY_PATH: a path in LD_PRELOAD can't have a space.
WITH_UCX = LD_PRELOAD=softverbs-preload.so
SOFTVERBS_GO_TEST = $(ON_SOFTVERBS) PINWHEEL_REQUIRE_RDMA=y $(GO_TEST) -count=1 -p 1 -timeout 8m

test-softverbs-go: softverbs
	$(SOFTVERBS_GO_TEST) ./verbs/rdma/...
	$(SOFTVERBS_GO_TEST) -run ReadOnlyMemory ./regcache

## test-vmmc-rdma: vmmc over RDMA, with streams, calls and proxies, on the software RDMA device
test-vmmc-rdma: softverbs
	$(SOFTVERBS_GO_TEST) -run '^TestRDMA|/^rdma$$' ./comm/vmmc
	$(SOFTVERBS_GO_TEST) -run '/^rdma$$|^TestProxiesWithAToken|^TestProxyIsReached' ./comm/vmmc/stream ./comm/vmmc/rpc ./comm/proxy
	$(WITH_UCX) $(SOFTVERBS_GO_TEST) ./comm/vmmc/vmmcbench

##@ Measure
## bench-vmmc-rdma: the same over RDMA, compared with perftest and UCX, into out/bench-vmmc-rdma.txt
bench-vmmc-rdma: build softverbs
	mkdir -p $(OUT)
	$(WITH_UCX) $(ON_SOFTVERBS) bin/pinwheel bench vmmc --rounds 5 --time 500ms --claims | tee $(OUT)/bench-vmmc-rdma.txt

##@ Test
## test-files-rdma: files over RDMA, on the software RDMA device
test-files-rdma: softverbs
	$(SOFTVERBS_GO_TEST) -run 'RDMA|Budget|/^rdma$$' ./comm/files
	$(SOFTVERBS_GO_TEST) -run '^Test(FilesGoBothWays|KilledCopiesGoOn|KilledUploadsGoOn|KilledTreesGoOn|CopiesGoOnWhenTheServerIsBack)$$/^RDMA$$|^TestFilesUnderALimitOfPinnedMemory$$|Insists' ./cmd/pinwheel
	SOFTVERBS_ENGINE=1 $(SOFTVERBS_GO_TEST) -run RDMA ./lab/bench/files

## test-files-fair: 64 clients share one budget for a minute, on each transport
test-files-fair: softverbs
	PINWHEEL_FILES_FAIR=1m $(SOFTVERBS_GO_TEST) -run ManyClientsUnderOneBudget -v ./comm/files

PINWHEEL_SMALL_FILES ?= 100000

## test-files-full: the long tests of files: test-files-fair, kills, PINWHEEL_SMALL_FILES=100000, fuzzing
test-files-full: test-files-fair
	PINWHEEL_FILES_KILLS=all $(SOFTVERBS_GO_TEST) -run KilledAtAStep ./comm/files
	PINWHEEL_SMALL_FILES=$(PINWHEEL_SMALL_FILES) $(GO) test -count=1 -run ManySmallFiles -v -timeout 30m ./comm/files/transfer
	$(MAKE) --no-print-directory fuzz FUZZ_PACKAGES=./comm/files/...

## test-softverbs-perftest: ucx_perftest, ib_write_bw, rping, fi_pingpong and others on the software RDMA device
test-softverbs-perftest: softverbs
	$(SOFTVERBS)/tests/perftest.sh $(SOFTVERBS_OUT)
