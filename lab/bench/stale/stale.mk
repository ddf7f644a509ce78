# Never stale: included by the Makefile. See vmwatch/doc.go and results/stale.

STALE_OUT := $(OUT)/stale
STALE := $(STALE_OUT)/stale
STALE_UCX := $(STALE_OUT)/stale-ucx
STALE_FABRIC := $(STALE_OUT)/stale-fabric
# Changes of mappings in each race.
STALE_CHANGES ?= 5000
RESULTS_STALE := results/stale

.PHONY: test-stale test-stale-host test-stale-ucx test-stale-mpi test-stale-race test-stale-guest test-stale-life test-stale-libfabric bench-watch results-watch results-stale stale-table $(STALE) $(STALE_UCX) $(STALE_FABRIC)

$(STALE): | tools
	mkdir -p $(STALE_OUT)
	$(GO) build $(STAMP) -o $@ ./lab/bench/stale

# libucm replaces mremap and others in whatever links it: only its own column runs in this one.
$(STALE_UCX): | tools
	@test -e /usr/include/ucs/memory/rcache.h || { echo "make: <ucs/memory/rcache.h> is missing: make install-ucx (as root)" >&2; exit 1; }
	mkdir -p $(STALE_OUT)
	$(GO) build $(STAMP) -tags ucx -o $@ ./lab/bench/stale

# memhooks of libfabric patches what the process has loaded: only libfabric's columns run in this one.
$(STALE_FABRIC): | tools
	@test -e /usr/include/rdma/fi_ext.h || { echo "make: <rdma/fi_ext.h> is missing: make install-libfabric (as root)" >&2; exit 1; }
	mkdir -p $(STALE_OUT)
	$(GO) build $(STAMP) -tags fabric -o $@ ./lab/bench/stale

##@ Test
## test-stale: never stale: every watch, every kind of change, races, UCX and Open MPI; writes out/stale
test-stale: test-stale-host test-stale-ucx $(if $(shell command -v mpirun.openmpi),test-stale-mpi) test-stale-race
	$(STALE) table $(STALE_OUT)/[1-9]-*.json > $(STALE_OUT)/README.md

## test-stale-host: never stale: on this machine, as root and as nobody
test-stale-host: $(STALE)
	@if [ "$$(id -u)" = 0 ]; then \
		$(STALE) matrix --mechanisms unwatched,tps,tp,uffd,pfn,none -o $(STALE_OUT)/1-host.json; \
		$(STALE) matrix --unprivileged --mechanisms auto,service -o $(STALE_OUT)/3-nobody.json; \
	else \
		$(STALE) matrix --mechanisms unwatched,auto,none -o $(STALE_OUT)/user.json; \
	fi

## test-stale-ucx: never stale: the same changes under the cache of UCX (make install-ucx)
test-stale-ucx: $(STALE_UCX)
	$(STALE_UCX) matrix --mechanisms ucx -o $(STALE_OUT)/2-ucx.json

## test-stale-mpi: never stale: in processes whose libc Open MPI has patched (make install-mpi)
test-stale-mpi: $(STALE) softverbs
	$(STALE) matrix --mpi --device softverbs --mechanisms unwatched,tps,uffd -o $(STALE_OUT)/3-openmpi.json

# As root: userfaultfd of libfabric needs that, and auto is then another mechanism than uffd.
## test-stale-libfabric: never stale: libfabric's cache under its monitors and ours, with costs (4 minutes, as root)
test-stale-libfabric: $(STALE_FABRIC) softverbs
	mkdir -p $(STALE_OUT)/libfabric
	$(STALE_FABRIC) matrix --device softverbs --mechanisms libfabric:memhooks,libfabric:userfaultfd,libfabric:pinwheel,libfabric:pinwheel:pfn,libfabric:pinwheel:uffd -o $(STALE_OUT)/libfabric/1-cells.json
	$(STALE_FABRIC) cost --allocators glibc --mechanisms libfabric:disabled,libfabric:memhooks,libfabric:userfaultfd,libfabric:pinwheel,libfabric:pinwheel:pfn,libfabric:pinwheel:uffd > $(STALE_OUT)/libfabric/2-costs.json
	$(STALE_FABRIC) table $(STALE_OUT)/libfabric/*.json > $(STALE_OUT)/libfabric/README.md

## test-stale-race: never stale: threads that free addresses against threads that use them; STALE_CHANGES=5000
test-stale-race: $(STALE)
	@as() { if [ "$$(id -u)" = 0 ] && [ "$$1" = nobody ]; then shift; setpriv --reuid=65534 --regid=65534 --clear-groups "$$@"; else shift; "$$@"; fi; }; \
	cp $(STALE) /tmp/pinwheel-stale-$$$$; trap 'rm -f /tmp/pinwheel-stale-'$$$$ EXIT; \
	for user in root nobody; do for threads in 2 4; do for helper in "" --helper; do \
		as $$user /tmp/pinwheel-stale-$$$$ race --threads $$threads --changes $(STALE_CHANGES) $$helper; \
	done; done; done | tee $(STALE_OUT)/5-races.json

## test-stale-guest: never stale: with BPF on kernel functions and Soft-RoCE, in a guest
test-stale-guest: $(STALE) fetch
	lab/testbed/run.sh -t 900 -o $(STALE_OUT)/guest sh -c 'cp $(STALE) /run/stale && \
		/run/stale matrix --mechanisms fentry -o "$$OUT/fentry.json" && \
		/run/stale matrix --unprivileged --mechanisms service -o "$$OUT/service.json" && \
		/run/stale matrix --device rdma --mechanisms unwatched,fentry,uffd -o "$$OUT/rdma.json" && \
		/run/stale race --mechanism fentry --threads 2 --helper --changes 2000 > "$$OUT/race.json"'
	cat $(STALE_OUT)/guest/fentry.json $(STALE_OUT)/guest/service.json $(STALE_OUT)/guest/rdma.json > $(STALE_OUT)/4-guest.json
	cp $(STALE_OUT)/guest/race.json $(STALE_OUT)/6-guest-race.json

## test-stale-life: 1,000 starts and stops of every watch
test-stale-life: tools
	VMWATCH_TEST_STARTS=1000 $(GO) test -count=1 -timeout 30m -run 'StartsAndStops' ./vmwatch

##@ Measure
## bench-watch: what each watch of mappings costs, compared with UCX, into out/stale
bench-watch: $(STALE) $(STALE_UCX)
	$(STALE) cost > $(STALE_OUT)/7-costs.json
	$(STALE_UCX) cost --mechanisms ucx >> $(STALE_OUT)/7-costs.json

##@ Write results/ (needs a quiet machine)
## results-watch: the cost of watching, compared with Wyckoff and Wu's kernel module (2 minutes)
results-watch: $(STALE)
	mkdir -p results/papers
	$(STALE) cost --runs 15 --allocators glibc > results/papers/watch.jsonl
	$(STALE) paper results/papers/watch.jsonl > results/papers/watch.md

## results-stale: results/stale: test-stale and bench-watch, with a million changes in each race
results-stale: STALE_CHANGES := 1000000
results-stale: test-stale test-stale-guest test-stale-libfabric bench-watch
	cp $(STALE_OUT)/[1-9]-*.json $(RESULTS_STALE)/
	mkdir -p $(RESULTS_STALE)/libfabric
	cp $(STALE_OUT)/libfabric/* $(RESULTS_STALE)/libfabric/
	$(MAKE) --no-print-directory stale-table

stale-table: $(STALE)
	$(STALE) table $(RESULTS_STALE)/*.json > $(RESULTS_STALE)/README.md
