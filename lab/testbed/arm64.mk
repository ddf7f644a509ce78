# Pinwheel for AArch64, built and tested on another processor: included by the Makefile. All that it needs is downloaded
# into out/arm64, and nothing is installed: see lab/testbed/README.md.

ARM64_OUT := $(OUT)/arm64

.PHONY: build-arm64 test-arm64 test-guest-arm64

build-arm64 test-arm64 test-guest-arm64: export PINWHEEL_TESTBED_CACHE = $(abspath $(ARM64_OUT))

##@ Build and install
## build-arm64: commands and libraries for AArch64, into out/arm64/bin (Debian)
build-arm64: tools
	lab/testbed/cross.sh $(MAKE) --no-print-directory build SHIM_LIB=$(ARM64_OUT)/bin

# Commands, jobs and guests are programs of many processes, which take an hour by emulation. QEMU answers itself what
# /proc/PID/stat says of the process that asks, and not as the kernel says it of others, mlock(2) has other errors, and there
# is no userfaultfd(2): who lives on a node, what can be locked, and which stores are sent, is told in a guest.
ARM64_PACKAGES ?= $(shell $(GO) list ./... | grep -vE '\bpinwheel/(cmd|lab/bench|mpishim|lab/testbed|internal/node|internal/tools/monitor|internal/engine|verbs/mlock)\b|pinwheel/comm/vmmc(/broker)?$$') \
	./lab/bench/ctable ./mpishim/server

##@ Test
## test-arm64: ARM64_PACKAGES on an emulated AArch64 processor (Debian, Linux 6.7)
test-arm64: tools
	lab/testbed/cross.sh -e $(GO) test -vet=off -timeout 30m $(ARM64_PACKAGES)

## test-guest-arm64: every watch, and the cache, on an AArch64 kernel in a guest (Debian)
test-guest-arm64: tools
	mkdir -p $(ARM64_OUT)/guest
	lab/testbed/cross.sh env PINWHEEL_TESTBED_ARCH=arm64 lab/testbed/gotest.sh -c 2 -t 5400 -o $(ARM64_OUT)/guest \
		-- -test.timeout=60m ./vmwatch ./internal/uffd -- -test.timeout=60m -test.skip=Soak ./regcache ./lab/bench/ctable ./profile ./internal/node ./internal/tools/monitor ./internal/engine ./verbs/mlock \
		-- -test.timeout=60m -test.short -test.skip=Soak ./comm/vmmc ./comm/vmmc/broker
