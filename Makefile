# make            the targets that most people need
# make help-all   all of them, by area
# make replay     the main job: NAS traces under every policy, a table and a figure
# make test       the tests that need nothing but Go and a C compiler
#
# Targets write to bin/ and out/. Only results* and bench-*, where their help says so, write to results/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
OUT := out
TRACES := $(wildcard results/traces/*.pwt)
REAL_TRACES := $(addprefix results/traces/,ft.B.4.pwt lu.B.4.pwt mg.C.4.pwt)

export GOFLAGS += -buildvcs=false
# The version that a program says it is.
STAMP = -ldflags "-X pinwheel/internal/version.stamp=$$(packaging/version.sh)"
# Without tables of symbols, which no test reads, a test links in half the processor time. Stacks have their lines all the same.
GO_TEST = $(GO) test -ldflags=-s

# One line for a tool that is missing: $(call need,command,what to install)
need = command -v $(1) >/dev/null || { echo "make: $(1) is missing: $(2)" >&2; exit 1; }

.PHONY: help help-all tools build replay test race race-packages fuzz test-grpc lint soak soak-node soak-vmmc test-faults test-sanitize bench-vmmc bench-files bench-peers bench-together bench results results-nodes results-files results-micro results-limit results-papers results-prediction ablation helper-share import-again calibrate vmwatch-object test-litmus clean

# The help is made of lines "## TARGET: what it does" above the targets, and of "##@ AREA" above the targets of an area.
HELP := build replay test install lint race test-live bench-live docs install-ci clean help-all

help:
	@for t in $(HELP); do sed -n "s/^## \($$t\): \(.*\)/make \1\t\2/p" $(MAKEFILE_LIST); done | expand -t 18

##@ Build and install
## help-all: every target, by area
help-all:
	@awk '/^##@ / { area = substr($$0, 5) } /^## [a-z0-9-]+: / { sub(":", ""); t = $$2; sub(/^## [^ ]+ /, ""); print area "\t" t "\t" $$0 }' \
		$(MAKEFILE_LIST) | LC_ALL=C sort | awk -F'\t' '$$1 != area { area = $$1; print (NR > 1 ? "\n" : "") area } { printf "  %-24s %s\n", $$2, $$3 }'

tools:
	@$(call need,$(GO),install Go 1.26 or newer from https://go.dev/dl or your distribution)
	@$(call need,gcc,apt-get install gcc libc6-dev)
	@[ -f .tarball-version ] || $(call need,git,apt-get install git)

## build: commands, preload library and C API, into bin/
build: tools shim api
	mkdir -p $(SHIM_LIB)
	$(GO) build $(STAMP) -o $(SHIM_LIB)/ ./cmd/...

##@ Measure
## replay: the main job: eleven NAS runs replayed under every policy; three also pin memory
replay: build
	mkdir -p $(OUT)
	bin/nasreplay compare $(TRACES)
	bin/nasreplay compare --mode real --provider auto --scale 0.25 --ranks 0 --skip-too-large --policy leave-pinned,paper,pinwheel $(REAL_TRACES)
	bin/nasreplay plot --out $(OUT)/pinned-ft.B.4.svg results/traces/ft.B.4.pwt
	@echo "figure: $(OUT)/pinned-ft.B.4.svg"

# As position-independent code, as the libraries are that the tests build: every package is compiled once, not once for
# the tests and once for the libraries. The race detector can't do with it.
lint test: export GOFLAGS += -buildmode=pie

##@ Test
## test: every test that runs in seconds, anywhere
# lint vets. Some tests wait, so there are two packages more at a time than processors.
test: tools
	$(GO_TEST) -vet=off -p $$(($$(nproc) + 2)) -timeout 15m ./...

# What a package has, or its tests, that starts goroutines or shares memory with them. Elsewhere the race detector can
# find nothing. Derived from the sources, so that no new package is forgotten: see race_test.go.
RACE_MARKS := ^[[:space:]]*(defer )?go [a-zA-Z]|\.Go\(|AfterFunc\(|\.Parallel\(\)|"sync"|"sync/|/atomic"|/errgroup"|"testing/synctest"|"os/signal"|"net/http"
# Their tests run programs that go build makes, without the race detector.
RACE_PROGRAMS := ./cmd/pinwheel ./mpishim ./mpishim/vmmc ./mpishim/watch
# What measures and replays: at night.
RACE_LAB := ./lab/bench/files ./lab/bench/live ./lab/bench/stale ./lab/replay% ./lab/testbed%
RACE ?= product
race_packages = $(filter-out $(RACE_PROGRAMS) $(if $(filter product,$(RACE)),$(RACE_LAB)),$(sort $(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | \
	sed 's,^$(CURDIR),.,' | while read -r dir; do grep -qE '$(RACE_MARKS)' "$$dir"/*.go && echo "$$dir"; done)))

race-packages:
	@printf '%s\n' $(race_packages)

## race: the tests of concurrent packages, under the race detector; RACE=all has those of the laboratory, too
race: tools
	$(GO_TEST) -vet=off -race -timeout 40m $(race_packages)

FUZZ_PACKAGES ?= ./...

## fuzz: ten seconds on every fuzz target of FUZZ_PACKAGES=./...
fuzz: tools
	@status=0; for pkg in $$($(GO) list $(FUZZ_PACKAGES)); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 10s -fuzzminimizetime 1x $$pkg || status=1; \
		done; \
	done; exit $$status

## test-grpc: gRPC over comm/vmmc/stream; downloads gRPC
test-grpc: tools
	cd comm/vmmc/stream/testdata/grpc && \
		for try in 1 2 3; do $(GO) list -mod=mod -deps -test . >/dev/null && break || sleep 10; done && \
		$(GO) test -mod=mod -count=1 -timeout 5m .

## lint: gofmt, go vet, staticcheck
lint: tools
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
		if [ -n "$$unformatted" ]; then echo "gofmt -w these: $$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

##@ Soak
## soak: 15 minutes of random mappings, faults and limits under the registration cache
soak: tools
	PINWHEEL_SOAK=10m $(GO) test -count=1 -run Soak -timeout 30m -v ./regcache ./lab/bench/ctable

NODE_KILLS ?= 10000

## soak-node: kill and start NODE_KILLS=10000 members of a job on this node
soak-node: tools
	PINWHEEL_NODE_KILLS=$(NODE_KILLS) $(GO) test -count=1 -run Soak -timeout 120m -v ./internal/node

VMMC_CYCLES ?= 100000

## soak-vmmc: export, import and unexport VMMC_CYCLES=100000 times on each transport
soak-vmmc: softverbs
	PINWHEEL_VMMC_CYCLES=$(VMMC_CYCLES) $(SOFTVERBS_GO_TEST) -run Soak -timeout 120m -v ./comm/vmmc

##@ Test
## test-faults: 100,000 Managers with a fault each (PINWHEEL_FAULTS), 1,000 over io_uring (PINWHEEL_FAULTS_URING)
test-faults: tools
	PINWHEEL_FAULTS=$${PINWHEEL_FAULTS:-100000} PINWHEEL_FAULTS_URING=$${PINWHEEL_FAULTS_URING:-1000} \
		$(GO) test -count=1 -run FaultsOver -timeout 60m -v . | grep -v '^pinwheel: internal fault'

## test-sanitize: the C code under ThreadSanitizer and AddressSanitizer
test-sanitize: tools
	CGO_CFLAGS="-g -O1 -fsanitize=thread" CGO_LDFLAGS=-fsanitize=thread $(GO) test -timeout 30m ./lab/bench/ctable
	$(GO) test -timeout 30m -asan ./lab/bench/ctable
	PINWHEEL_SANITIZE=y $(GO) test -timeout 30m -count=1 -run Sanitizers ./mpishim

##@ Measure
## bench-peers: the registration cache, in Go and C, compared with UCX's, into out/bench-peers.jsonl
bench-peers: tools
	mkdir -p $(OUT)
	lab/bench/peers/run.sh

## bench-vmmc: vmmc, its streams and calls, compared with sockets and net/rpc, into out/bench-vmmc.txt
bench-vmmc: build
	mkdir -p $(OUT)
	bin/pinwheel bench vmmc --rounds 5 --time 500ms --claims | tee $(OUT)/bench-vmmc.txt

FILES_DIR ?= /dev/shm

## bench-files: pinwheel serve compared with sendfile(2), nginx and rsync; FILES_DIR=/dev/shm
bench-files: build
	mkdir -p $(OUT)
	bin/pinwheel bench files --dir $(FILES_DIR) --claims | tee $(OUT)/bench-files.txt

## bench-together: what registrations lose to each other that run at the same time
bench-together: tools softverbs
	mkdir -p $(OUT)
	{ $(GO) test -run '^$$' -bench Together -benchtime 200x -count 3 ./verbs/uring && \
		$(ON_SOFTVERBS) PINWHEEL_REQUIRE_RDMA=y $(GO) test -run '^$$' -bench Together -benchtime 200x -count 3 ./verbs/rdma; } | tee $(OUT)/bench-together.txt

## bench: every Go benchmark, into out/bench.txt for benchstat
bench: tools
	mkdir -p $(OUT)
	$(GO) test -run '^$$' -bench . -benchtime 200ms -count 5 ./... | tee $(OUT)/bench.txt

##@ Write results/ (needs a quiet machine)
## results: results/ and README's simulated figures (8 minutes)
results: build
	bin/nasreplay compare --mode real --pairs 5 --policy leave-pinned,paper,pinwheel --json $(REAL_TRACES) > results/real.jsonl.partial
	mkdir -p $(OUT)
	for t in $(REAL_TRACES); do \
		bin/nasreplay learn --force -o $(OUT)/real.profile results/traces-again/$${t##*/} >&2 && \
		bin/nasreplay compare --mode real --pairs 5 --policy pinwheel --profile $(OUT)/real.profile --json $$t || exit; \
	done >> results/real.jsonl.partial
	mv results/real.jsonl.partial results/real.jsonl
	bin/nasreplay results --out results
	bin/nasreplay frontier --out results --document README.md $(TRACES)

## results-prediction: results/prediction.md: goals, each idea left out, what nobody can foresee (any machine)
results-prediction: build
	bin/nasreplay prediction --out results $(TRACES)

##@ Measure
## ablation: what policy pinwheel saves and costs without each of its ideas
ablation: build
	bin/nasreplay prediction --part ablation $(TRACES)

##@ Write results/ (needs a quiet machine)
## helper-share: what a share of a core saves and costs, into results/helper-share.md (any machine)
helper-share: build
	bin/nasreplay shares --document results/helper-share.md --summary README.md $(TRACES)

## results-nodes: results/nodes.md: shared idle cores, several tasks on a node, 4,096 ranks (any machine)
results-nodes: build
	bin/nasreplay nodes --out results

## results-micro: results/papers/micro.md: the papers' microbenchmarks, in virtual time (any machine)
results-micro: build
	bin/nasreplay micro --out results/papers

# FT on a grid of 2 x 16 ranks, as in Figures 3 and 11f of Li et al.: without a limit, with their 3 GB, and with less than leave-pinned
# takes. Class D has 25 iterations.
LIMIT_RUNS := "" "--budget 160M" "--class D --iterations 25" "--class D --iterations 25 --budget 2861M" \
	"--class D --iterations 25 --budget 2G" "--class D --iterations 25 --budget 1800M"

## results-limit: results/papers/limit.txt: FT beyond the limit of pinned memory, in virtual time (any machine)
results-limit: build
	mkdir -p results/papers
	for r in $(LIMIT_RUNS); do bin/nasreplay scale --to 32 --layout 2x16 $$r --policy leave-pinned,lru,paper,pinwheel,oracle --json \
		results/traces/ft.C.16.pwt || exit; done > results/papers/limit.jsonl
	for r in $(LIMIT_RUNS); do bin/nasreplay scale --to 32 --layout 2x16 $$r --policy leave-pinned,lru,paper,pinwheel,oracle \
		results/traces/ft.C.16.pwt || exit; done > results/papers/limit.txt

## results-papers: results/papers.md: what the papers have, and what we have, from raw data (any machine)
results-papers: build
	bin/nasreplay papers --out results

## results-files: results/files/figures.md: ways to serve files, in virtual time (any machine)
results-files: build
	bin/nasreplay files --out results/files

AGAIN_SOURCE := NPB 3.4-MPI (gfortran -O2, Open MPI 4.1.4), all ranks on one 2-core machine; a second run of the job on another machine and day, under another load

## import-again: second runs of the jobs of results/traces, from the recorder's CSV=DIR/JOB/rank*.csv*
import-again: build
	@[ -n "$(CSV)" ] || { echo "make: give CSV=DIR, which has a directory of rank*.csv or rank*.csv.zst for each job" >&2; exit 1; }
	mkdir -p results/traces-again
	@set -e; for dir in $(CSV)/*/; do \
		job=$$(basename "$$dir"); \
		bin/nasreplay import --force --out "results/traces-again/$$job.pwt" --source "$(AGAIN_SOURCE)" "$$dir"rank*.csv*; \
	done

##@ Measure
## calibrate: what registration costs here, into out/calibration.json
calibrate: build
	mkdir -p $(OUT)
	bin/nasreplay calibrate --out $(OUT)/calibration.json

##@ Build and install
## vmwatch-object: compile vmwatch/bpf/watch.bpf.c (needs clang, llvm and libbpf-dev)
vmwatch-object:
	$(GO) generate ./vmwatch

##@ Test
## test-litmus: the order of reads and writes in the table, against the memory model of C11 (needs herd7)
test-litmus:
	@$(call need,herd7,opam install herdtools7)
	regcache/litmus/run.sh

##@ Build and install
## clean: remove bin/ and out/
clean:
	rm -rf bin $(OUT)

include packaging/packaging.mk
include lab/testbed/packages.mk
include docs/site/site.mk
include lab/testbed/testbed.mk
include lab/testbed/arm64.mk
include lab/testbed/softverbs/softverbs.mk
include lab/testbed/live/live.mk
include lab/bench/stale/stale.mk
include lab/bench/live/live.mk
include lab/bench/files/files.mk
include lab/bench/prepare/prepare.mk
include mpishim/mpishim.mk
