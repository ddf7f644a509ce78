# Releases and packages: included by the Makefile. See docs/packages.md.

DIST := $(OUT)/dist

.PHONY: dist test-dist

## dist: the source tarball of this commit, with vendored modules, its SBOM and SHA256SUMS, into out/dist
dist: tools
	@$(call need,jq,make install-packaging (as root))
	rm -rf $(DIST)
	packaging/dist.sh $(DIST)

## test-dist: the tarball has the same bytes twice, builds without a network, and is what its SBOM says; a release needs a tag and an entry
test-dist: dist
	packaging/test-dist.sh $(DIST)
