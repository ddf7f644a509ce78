# Releases and packages: included by the Makefile. See docs/packages.md.

DIST := $(OUT)/dist
ABI_LIBS := libpinwheel-api libpinwheel-vmmc libpinwheel-watch

.PHONY: dist test-dist abi-dump test-abi rename-module test-rename install-modules test-modules deb test-deb rpm test-manifests \
	test-container

##@ Package and release
## dist: the source tarball with vendored modules, its SBOM and SHA256SUMS, into out/dist
dist: tools
	@$(call need,jq,make install-packaging (as root))
	rm -rf $(DIST)
	packaging/dist.sh $(DIST)

##@ Test
## test-dist: the source tarball is reproducible, builds offline and is what its SBOM says
test-dist: dist
	packaging/test-dist.sh $(DIST)

##@ Package and release
## abi-dump: packaging/abi, which test-abi compares with: the ABI of the last release
abi-dump: api
	@$(call need,abidw,make install-packaging (as root))
	for l in $(ABI_LIBS); do packaging/abi.sh dump $(SHIM_LIB)/$$l.so.0 packaging/abi/$$l.abi || exit; done

##@ Test
## test-abi: SONAMEs, symbol versions and ABI of the C libraries are those of packaging/abi
test-abi: api
	@$(call need,abidiff,make install-packaging (as root))
	packaging/test-abi.sh $(SHIM_LIB)

# Where releases are meant to be published. Nothing is there yet, and go.mod still says pinwheel.
MODULE ?= github.com/pinwheel-rdma/pinwheel

##@ Package and release
## rename-module: give the Go module the path MODULE=github.com/pinwheel-rdma/pinwheel
rename-module: tools
	packaging/rename-module.sh $(MODULE)

##@ Test
## test-rename: a copy of this commit compiles under another module path
test-rename: tools
	packaging/test-rename.sh

LAUNCHERS := mpirun mpiexec srun
module_file = sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@LIBEXECDIR@|$(LIBEXECDIR)|; s|@MANDIR@|$(MANDIR)|; s|@VERSION@|'$(1)'|'

##@ Build and install
## install-modules: modulefiles and the launchers that they put into PATH; MODULEDIR=PREFIX/share/modulefiles
install-modules:
	install -d $(foreach l,$(LAUNCHERS),$(DESTDIR)$(LIBEXECDIR)/pinwheel/launchers/$(l)) $(DESTDIR)$(MODULEDIR)/pinwheel
	cd $(DESTDIR)$(LIBEXECDIR)/pinwheel/launchers && $(module_file) $(CURDIR)/packaging/modules/launcher.in > pinwheel-stand-in && \
		chmod 755 pinwheel-stand-in && for l in $(LAUNCHERS); do ln -sf ../pinwheel-stand-in $$l/$$l || exit; done
	version=$$(packaging/version.sh --package); for e in "" .lua; do \
		$(call module_file,"$$version") packaging/modules/pinwheel$$e.in > $(DESTDIR)$(MODULEDIR)/pinwheel/$$version$$e || exit; done

##@ Test
## test-modules: MPI jobs after "module load pinwheel", with environment-modules and Lmod
test-modules: build softverbs
	lab/testbed/packages/modules.sh

##@ Package and release
## deb: Debian packages without a word of lintian, into out/deb
deb: dist
	@$(call need,dpkg-buildpackage,make install-packaging (as root))
	@$(call need,lintian,make install-packaging (as root))
	packaging/deb.sh $(DIST) $(OUT)/deb

##@ Test
## test-deb: the Debian packages installed, used and removed in a clean Debian (as root)
test-deb: deb softverbs
	@$(call need,mmdebstrap,make install-packaging (as root))
	lab/testbed/packages/deb.sh $(OUT)/deb

##@ Package and release
## rpm: RPM packages without a word of rpmlint, into out/rpm
rpm: dist
	@$(call need,rpmbuild,make install-packaging (as root))
	@$(call need,rpmlint,make install-packaging (as root))
	packaging/rpm.sh $(DIST) $(OUT)/rpm

##@ Test
## test-manifests: manifests of Kubernetes have its types, and few rights; downloads its types
test-manifests: tools
	cd packaging/kubernetes/testdata/check && $(GO) test -count=1 .

## test-container: images of the tarball, and an MPI job in them, by Podman (as root)
test-container: dist softverbs test-manifests
	@for c in podman mmdebstrap mpicc.openmpi jq; do $(call need,$$c,make install-packaging (as root)); done
	lab/testbed/packages/container.sh $(DIST)/pinwheel-*.tar.gz
