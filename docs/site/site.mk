# The documentation as a site: included by the Makefile. It needs Debian's mkdocs (make install-docs).

SITE_SOURCE := $(OUT)/site-source

.PHONY: docs

##@ Build and install
## docs: the pages as a site, into out/site (needs mkdocs: make install-docs)
docs: tools
	@$(call need,mkdocs,make install-docs)
	rm -rf $(SITE_SOURCE) $(OUT)/site
	$(GO) run ./docs/site stage . $(SITE_SOURCE)
	install -D -m 644 docs/site/site.css $(SITE_SOURCE)/docs/site/site.css
	mkdocs build --quiet --strict -f docs/site/mkdocs.yml
	$(GO) run ./docs/site check $(OUT)/site
	@echo "open $(OUT)/site/index.html"

.PHONY: test-docs

##@ Test
## test-docs: the commands of "Getting started" and the tutorials, in a fresh clone
test-docs: tools
	@$(call need,mpicc,make install-mpi)
	docs/site/try.sh docs/getting-started.md docs/tutorial-c.md docs/tutorial-go.md
