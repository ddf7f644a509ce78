# What it takes to register a large pool: included by the Makefile. See results/prepare.

BENCH_PREPARE := $(OUT)/bench-prepare/prepare
BENCH_PREPARE_ROUNDS ?= 5

.PHONY: bench-prepare $(BENCH_PREPARE)

$(BENCH_PREPARE): | tools
	mkdir -p $(@D)
	$(GO) build $(STAMP) -o $@ ./lab/bench/prepare

##@ Write results/ (needs a quiet machine)
## bench-prepare: registering a pool of 1 to 16 GiB, plainly and by Manager.Prepare (15 minutes, as root)
bench-prepare: $(BENCH_PREPARE) softverbs
	mkdir -p results/prepare
	$(ON_SOFTVERBS) $(BENCH_PREPARE) run --rounds $(BENCH_PREPARE_ROUNDS)
	$(BENCH_PREPARE) table
