# What Pinwheel saves and costs on the software RDMA device: included by the Makefile. See results/live.

BENCH_LIVE := $(OUT)/bench-live/live
BENCH_LIVE_ROUNDS ?= 10
# Patterns of rows, such as "openmpi-ucx/ft.B.2 */halo.8.*"; $(BENCH_LIVE) run --list has them. Default: all.
BENCH_LIVE_ROWS ?=
# No run begins after this time.
BENCH_LIVE_BUDGET ?= 2h

.PHONY: bench-live bench-live-table bench-paper results-headlines $(BENCH_LIVE)

$(BENCH_LIVE): build softverbs
	mkdir -p $(@D)
	$(GO) build -o $@ ./lab/bench/live

##@ Write results/ (needs a quiet machine)
## bench-live: memory and time of MPI jobs, compared with caches and none; NPB=DIR (2 hours; resumes)
bench-live: $(BENCH_LIVE)
	$(BENCH_LIVE) run --rounds $(BENCH_LIVE_ROUNDS) --budget $(BENCH_LIVE_BUDGET) $(if $(BENCH_LIVE_ROWS),--rows "$(BENCH_LIVE_ROWS)") $(if $(NPB),--npb $(NPB))
	$(MAKE) --no-print-directory bench-live-table

##@ Write results/ (needs a quiet machine)
## bench-live-table: tables of what bench-live measured, into results/live/README.md
bench-live-table:
	$(GO) run ./lab/bench/live table --readme README.md

BENCH_PAPER_ROUNDS ?= 9
# As BENCH_LIVE_ROWS. Default: messages of 64 KiB to 64 MiB.
BENCH_PAPER_ROWS ?= */reused.* */fresh.* */latency.*K.2.idle* */latency.*M.2.idle*

## bench-paper: the papers' microbenchmarks on the software RDMA device (7 minutes a round; resumes)
bench-paper: $(BENCH_LIVE)
	$(BENCH_LIVE) run --runs results/papers/live.jsonl --rounds $(BENCH_PAPER_ROUNDS) --budget $(BENCH_LIVE_BUDGET) --rows "$(BENCH_PAPER_ROWS)"
	$(BENCH_LIVE) paper

##@ Write results/ (needs a quiet machine)
## results-headlines: the page of ten numbers, from the raw data in results/
results-headlines:
	$(GO) run ./lab/bench/live headlines
