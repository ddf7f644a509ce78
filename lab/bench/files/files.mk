# How files are served, on the software RDMA device and by other servers: included by the Makefile. See results/files.

BENCH_FILES := $(OUT)/bench-files/files
BENCH_FILES_ROUNDS ?= 5
# Patterns of rows, such as "10-*/auto"; $(BENCH_FILES) run --list has them. Default: all.
BENCH_FILES_ROWS ?=
# No row begins after this time.
BENCH_FILES_BUDGET ?= 10m

.PHONY: bench-files-figures bench-files-page $(BENCH_FILES)

$(BENCH_FILES): build softverbs
	mkdir -p $(@D)
	$(GO) build -o $@ ./lab/bench/files

##@ Write results/ (needs a quiet machine)
## bench-files-figures: the figures of serving files on the software RDMA device (35 minutes; resumes)
bench-files-figures: $(BENCH_FILES)
	SOFTVERBS_ENGINE=1 $(ON_SOFTVERBS) $(BENCH_FILES) run --dir $(FILES_DIR) --rounds $(BENCH_FILES_ROUNDS) --budget $(BENCH_FILES_BUDGET) \
		$(if $(BENCH_FILES_ROWS),--rows "$(BENCH_FILES_ROWS)")
	$(MAKE) --no-print-directory bench-files-page

## bench-files-page: the pages of what bench-files-figures and bench-files-nfs measured
bench-files-page:
	$(GO) run ./lab/bench/files page
