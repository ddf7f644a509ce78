# The C API: the library that transports link, its example, and what "make install"
# installs. Included by mpishim.mk.

API_SONAME := libpinwheel-api.so.0
API_SRC := $(wildcard mpishim/core/*.c mpishim/api/*.c)
API_HDR := $(wildcard mpishim/api/*.h mpishim/include/*.h) $(SHIM_HDR)
API_CFLAGS := $(SHIM_CFLAGS) -Impishim/include
# Threads call into it when they end: it stays where it is.
API_LDFLAGS := -shared -Wl,-z,defs,-z,nodelete -Wl,-soname,$(API_SONAME) -Wl,--version-script=mpishim/api/api.map

# Of libraries that are Go and have a C interface.
GO_SONAMES := libpinwheel-vmmc.so.0 libpinwheel-watch.so.0

.PHONY: api api-prefix install install-api uninstall

##@ Build and install
## api: libpinwheel-api.so, -go.so, -vmmc.so and -watch.so, into bin/
api: $(addprefix $(SHIM_LIB)/,$(API_SONAME) libpinwheel-go.so $(GO_SONAMES))

$(SHIM_LIB)/$(API_SONAME): $(API_SRC) $(API_HDR) mpishim/api/api.map
	@mkdir -p $(@D)
	$(CC) $(API_CFLAGS) $(API_LDFLAGS) -o $@ $(API_SRC) -ldl -lpthread
	ln -sf $(API_SONAME) $(@:.0=)

# Always asked, as libpinwheel-go.so. What Go has started stays where it is.
.PHONY: $(GO_SONAMES:%=$(SHIM_LIB)/%)
$(GO_SONAMES:%=$(SHIM_LIB)/%): $(SHIM_LIB)/libpinwheel-%.so.0:
	@mkdir -p $(@D)
	$(GO) build -buildmode=c-shared -ldflags "-extldflags \"-Wl,-soname,$(@F) -Wl,-z,nodelete '-Wl,--version-script=$(CURDIR)/mpishim/$*/$*.map'\"" -o $@ ./mpishim/$*
	@rm -f $(basename $@).h
	ln -sf $(@F) $(@:.0=)

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
# What nobody links: distributions set $(LIBDIR)/pinwheel.
PKGLIBDIR ?= $(LIBDIR)
LIBEXECDIR ?= $(PREFIX)/libexec
MODULEDIR ?= $(PREFIX)/share/modulefiles
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
UNITDIR ?= $(PREFIX)/lib/systemd
functions_of = $(shell sed -nE 's/^(int|size_t) (pinwheel_[a-z_]*).*/\2/p' mpishim/include/$(1).h)
API_FUNCTIONS = $(call functions_of,pinwheel) pinwheel_domain_open_verbs

## install-api: the C API and what it needs; PREFIX=/usr/local DESTDIR=
install-api: api
	install -d $(addprefix $(DESTDIR),$(LIBDIR)/pkgconfig $(PKGLIBDIR) $(INCLUDEDIR) $(MANDIR)/man3)
	install -m 755 $(addprefix $(SHIM_LIB)/,$(API_SONAME) $(GO_SONAMES)) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(SHIM_LIB)/libpinwheel-go.so $(DESTDIR)$(PKGLIBDIR)/
	for l in $(API_SONAME) $(GO_SONAMES); do ln -sf $$l $(DESTDIR)$(LIBDIR)/$${l%.0} || exit 1; done
	install -m 644 $(addprefix mpishim/include/,pinwheel.h pinwheel_verbs.h pinwheel_vmmc.h pinwheel_watch.h) $(DESTDIR)$(INCLUDEDIR)/
	version=$$(packaging/version.sh --package); for p in pinwheel pinwheel-vmmc pinwheel-watch; do \
		sed "s|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$$version|" \
			mpishim/include/$$p.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/$$p.pc || exit 1; done
	install -m 644 $(addprefix mpishim/include/,pinwheel.3 pinwheel_vmmc.3 pinwheel_watch.3) $(DESTDIR)$(MANDIR)/man3/
	for f in $(API_FUNCTIONS); do echo '.so man3/pinwheel.3' > $(DESTDIR)$(MANDIR)/man3/$$f.3; done
	$(foreach p,pinwheel_vmmc pinwheel_watch,for f in $(call functions_of,$(p)); do echo '.so man3/$(p).3' > $(DESTDIR)$(MANDIR)/man3/$$f.3; done;)

## install: commands, libraries, manual pages, modulefiles; PREFIX=/usr/local DESTDIR=
install: build install-api install-modules
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(MANDIR)/man1 $(BASHDIR) $(ZSHDIR) $(FISHDIR) $(UNITDIR)/system $(UNITDIR)/user)
	install -m 755 bin/pinwheel bin/nasreplay $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(SHIM_LIB)/libpinwheel.so $(SHIM_LIB)/libpinwheel-meter.so $(DESTDIR)$(PKGLIBDIR)/
	install -m 644 cmd/pinwheel/pinwheel.1 cmd/nasreplay/nasreplay.1 $(DESTDIR)$(MANDIR)/man1/
	for c in pinwheel nasreplay; do \
		bin/$$c completion bash > $(DESTDIR)$(BASHDIR)/$$c && bin/$$c completion zsh > $(DESTDIR)$(ZSHDIR)/_$$c && \
		bin/$$c completion fish > $(DESTDIR)$(FISHDIR)/$$c.fish || exit 1; done
	cd cmd/pinwheel/systemd && for u in system/* user/*; do \
		sed 's|/usr/local/bin/|$(PREFIX)/bin/|' $$u > $(DESTDIR)$(UNITDIR)/$$u || exit 1; done

## uninstall: removes what install puts there; the same PREFIX and directories
uninstall:
	@all=$$(mktemp -d) && trap 'rm -rf "$$all"' EXIT && \
	$(MAKE) --no-print-directory install DESTDIR="$$all" > /dev/null && \
	cd "$$all" && find . ! -type d | sed 's|^\.||' | while IFS= read -r f; do rm -f "$(DESTDIR)$$f"; done && \
	find . -depth -type d -path '*pinwheel*' | sed 's|^\.||' | while IFS= read -r d; do rmdir "$(DESTDIR)$$d" 2>/dev/null || true; done

# An installation that transports are compiled against in the test bed's guest, with pkg-config (see test-guest).
api-prefix:
	$(MAKE) --no-print-directory install-api PREFIX=$(abspath $(SHIM_OUT)/prefix) DESTDIR= > /dev/null
