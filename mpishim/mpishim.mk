# The preload library, the command and the MPI tests: included by the Makefile.
# The MPI programs need Debian's openmpi-bin, libopenmpi-dev, gfortran and g++
# (make install-mpi, as root); the libraries need a C compiler only.

GO ?= go
SHIM_OUT ?= out/mpishim
SHIM_LIB ?= bin
SHIM_SRC := $(wildcard mpishim/core/*.c mpishim/preload/*.c)
SHIM_HDR := $(wildcard mpishim/core/*.h mpishim/preload/*.h) regcache/table.h regcache/grant.h verbs/rdma/internal/ibv/abi.h
SHIM_CFLAGS := -O2 -g -std=gnu11 -fPIC -fvisibility=hidden -fno-omit-frame-pointer -Wall -Wextra \
	-Impishim/core -Iregcache -Iverbs/rdma/internal/ibv

# The tests that run them compile sessions.c and planned.c, which are MPI-4 and which Debian's Open MPI lacks, and
# languages* and recorded*, one program each in several files.
MPI_SEPARATE := %/unloaded.c %/sessions.c %/planned.c %/languages.f90 %/languages_ends.c \
	$(wildcard lab/testbed/programs/recorded*.c)
MPI_SRC := $(filter-out $(MPI_SEPARATE),$(wildcard lab/testbed/programs/*.c lab/testbed/programs/*.cc lab/testbed/programs/*.f90))
MPI_PROGRAMS := $(patsubst lab/testbed/programs/%,$(SHIM_OUT)/tests/%,$(basename $(MPI_SRC)))

.PHONY: shim mpi-programs

##@ Build and install
## shim: libpinwheel.so, libpinwheel-go.so and libpinwheel-meter.so, into bin/
shim: $(SHIM_LIB)/libpinwheel.so $(SHIM_LIB)/libpinwheel-go.so $(SHIM_LIB)/libpinwheel-meter.so

$(SHIM_LIB)/libpinwheel.so: $(SHIM_SRC) $(SHIM_HDR)
	@mkdir -p $(@D)
	$(CC) $(SHIM_CFLAGS) -Impishim/preload -shared -Wl,-z,defs -Wl,-soname,libpinwheel.so -o $@ $(SHIM_SRC) -ldl -lpthread

METER_SRC := mpishim/meter/meter.c mpishim/preload/symbol.c

$(SHIM_LIB)/libpinwheel-meter.so: $(METER_SRC) mpishim/preload/symbol.h
	@mkdir -p $(@D)
	$(CC) $(SHIM_CFLAGS) -Impishim/preload -shared -Wl,-z,defs -Wl,-soname,$(@F) -o $@ $(METER_SRC) -ldl

# Always asked: the Go command knows best what is out of date.
.PHONY: $(SHIM_LIB)/libpinwheel-go.so
$(SHIM_LIB)/libpinwheel-go.so:
	$(GO) build -buildmode=c-shared -ldflags '-extldflags=-Wl,-soname,$(@F)' -o $@ ./mpishim/server
	@rm -f $(@:.so=.h)

## mpi-programs: the MPI programs of the tests, in C, C++ and Fortran
mpi-programs: $(MPI_PROGRAMS)

$(SHIM_OUT)/tests/%: lab/testbed/programs/%.c $(wildcard lab/testbed/programs/*.h)
	@mkdir -p $(@D)
	mpicc -O2 -g -fno-omit-frame-pointer -Wall -Wextra -o $@ $<

$(SHIM_OUT)/tests/%: lab/testbed/programs/%.cc $(wildcard lab/testbed/programs/*.h)
	@mkdir -p $(@D)
	mpicxx -DOMPI_SKIP_MPICXX -O2 -g -fno-omit-frame-pointer -Wall -Wextra -o $@ $<

$(SHIM_OUT)/tests/%: lab/testbed/programs/%.f90
	@mkdir -p $(@D)
	mpifort -O2 -g -fno-omit-frame-pointer -Wall -J$(@D) -o $@ $<

.PHONY: test-jobs

##@ Test
## test-jobs: jobs of Open MPI and MPICH without RDMA; our rows and headers against the installed ones
test-jobs: tools
	MPISHIM_TEST_JOBS=1 $(GO_TEST) -count=1 -timeout 30m -run 'OutsideOfVerbs|RealJobs|IsReplayed|RowsFit|APIHeader' ./mpishim

# What test-guest GUEST=mpi-full runs.
TEST_MPI_RANKS ?= 2 4
TEST_MPI_POLICIES ?= pinwheel paper leave-pinned on-demand disabled
TEST_MPI_PROGRAMS ?= halo wavefront transpose ring_f08 alltoallv derived renewed persistent collectives vectors neighbours matched onesided exchange_f08 threads

SOAK_LAUNCHES ?= 1000
STANDIN := $(SHIM_OUT)/standin

.PHONY: standin bench-path soak-mpi

# The stand-ins and the libraries in one directory.
standin: shim
	@mkdir -p $(STANDIN)
	cp $(SHIM_LIB)/libpinwheel.so $(SHIM_LIB)/libpinwheel-go.so $(STANDIN)/
	$(CC) -O2 -fPIC -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=mpishim/testing/standin/verbs.map -o $(STANDIN)/libibverbs.so.1 mpishim/testing/standin/verbs.c
	$(CC) -O2 -fPIC -shared -fno-omit-frame-pointer -Wl,-soname,libmpi.so.40 -o $(STANDIN)/libmpi.so.40 mpishim/testing/standin/mpi.c $(STANDIN)/libibverbs.so.1
	for p in path calls life; do $(CC) -O2 -fno-omit-frame-pointer -o $(STANDIN)/$$p mpishim/testing/standin/$$p.c $(STANDIN)/libmpi.so.40 $(STANDIN)/libibverbs.so.1 -lpthread \
		-Wl,-rpath,$(abspath $(STANDIN)) -Wl,-rpath-link,$(STANDIN); done

##@ Measure
## bench-path: what a message costs in the preload library, in ns (a minute)
bench-path: standin
	mpishim/testing/standin/bench.sh $(STANDIN) 5 | tee $(SHIM_OUT)/bench-path.txt

.PHONY: bench-start bench-helper bench-api

## bench-start: processor time of the start and end of a rank, in ms (a minute)
bench-start: standin
	mpishim/testing/standin/start.sh $(STANDIN) 10 | tee $(SHIM_OUT)/bench-start.txt

## bench-helper: processor time of the helper for each use, and its wake-ups (20 seconds)
bench-helper: standin
	mpishim/testing/standin/helper.sh $(STANDIN) | tee $(SHIM_OUT)/bench-helper.txt

## bench-api: acquire and release by the C API, in ns; a first use, in us
bench-api: api
	@mkdir -p $(SHIM_OUT)
	for p in hit ask; do $(CC) -O2 -fno-omit-frame-pointer -Wall -Wextra -Impishim/include -o $(SHIM_OUT)/$$p mpishim/testing/standin/$$p.c \
		-L$(SHIM_LIB) -lpinwheel-api -lpthread -Wl,-rpath,$(abspath $(SHIM_LIB)); done
	{ for p in leave-pinned pinwheel; do echo "$$p"; PINWHEEL_POLICY=$$p PINWHEEL_IDLE_POLICY=aggressive $(SHIM_OUT)/hit; done; \
		PINWHEEL_POLICY=leave-pinned $(SHIM_OUT)/ask; } | tee $(SHIM_OUT)/bench-api.txt

NPB ?=

.PHONY: bench-record

BENCH_RECORD_PROGRAMS ?= ft.B mg.B is.C

## bench-record: what recording costs NPB 3.4; NPB=DIR
bench-record: shim
	@[ -n "$(NPB)" ] || { echo "bench-record: give NPB=DIR, the bin directory of NPB 3.4-MPI, which is not part of Pinwheel"; exit 1; }
	@mkdir -p $(SHIM_OUT)
	lab/testbed/programs/record.sh "$(CURDIR)/$(SHIM_LIB)" $(abspath $(NPB)) 5 $(BENCH_RECORD_PROGRAMS) | tee $(SHIM_OUT)/bench-record.txt

##@ Soak
## soak-mpi: SOAK_LAUNCHES=1000 of programs that end in every way, without RDMA
soak-mpi: standin mpi-programs
	lab/testbed/programs/soak.sh "$(CURDIR)/$(STANDIN)" "$(CURDIR)/$(SHIM_OUT)/tests" $(SOAK_LAUNCHES)

include mpishim/api/api.mk
