# What Pinwheel takes from a rank whose processor its helper shares: included by the Makefile. See results/live/noise.md.

BENCH_NOISE := $(OUT)/bench-noise/noise
BENCH_NOISE_ROUNDS ?= 10

.PHONY: bench-noise bench-waits bench-starts $(BENCH_NOISE)

$(BENCH_NOISE): build softverbs
	mkdir -p $(@D)
	$(GO) build -o $@ ./bench/noise

## bench-noise: fixed-work quanta on the rank's processor, with and without Pinwheel in turn (ten minutes; goes on where it was)
bench-noise: $(BENCH_NOISE)
	$(BENCH_NOISE) run --rounds $(BENCH_NOISE_ROUNDS) --rows shared,auto
	$(BENCH_NOISE) table noise

## bench-waits: by how much the helper makes the waits of its rank longer; from the runs of bench-noise
bench-waits: $(BENCH_NOISE)
	$(BENCH_NOISE) run --rounds $(BENCH_NOISE_ROUNDS) --rows shared,auto
	$(BENCH_NOISE) table waits

## bench-starts: how exactly registrations begin on an idle processor, on the rank's own, and in its waits
bench-starts: $(BENCH_NOISE)
	$(BENCH_NOISE) run --rounds $(BENCH_NOISE_ROUNDS)
	$(BENCH_NOISE) table starts
