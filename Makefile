# FlexFile: everything that a user or a developer runs. `make help` lists the targets.
# The libraries are built by cargo; this file adds what cargo doesn't do: C tests, the example, installation.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SONAME := libflexfile.so.$(firstword $(subst ., ,$(VERSION)))

CARGO ?= cargo
PYTHON ?= python3
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g
WARNINGS := -std=c11 -Wall -Wextra -Wpedantic -Werror

# Where cargo builds. Absolute, since scripts change their directory.
export CARGO_TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
LIBDIR := $(CARGO_TARGET_DIR)/release
RUN := $(CARGO_TARGET_DIR)/run

PREFIX ?= /usr/local
INCLUDEDIR := $(PREFIX)/include
INSTALL_LIBDIR ?= $(PREFIX)/lib

# make run: the size of the corpus, or FILE=path for a text of your own.
RUN_MEGABYTES ?= 105
FILE ?=

# make test-long
FUZZ_SECONDS ?= 60

EXAMPLE_SOURCES := $(addprefix examples-c/,file_edit.c edit_plan.c flex_edit.c plain_edit.c report.c text.c)
EXAMPLE_HEADERS := $(wildcard examples-c/*.h) include/flexfile.h

.PHONY: help run lib example test test-rust test-c test-example test-install test-long lint header check-header \
	check-symbols bench-tree bench-file install uninstall clean check-tools check-run-tools

help: ## list the targets
	@echo "FlexFile $(VERSION)"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  %-14s %s\n' "$$name" "$$text"; done
	@echo "Variables: FILE=path and RUN_MEGABYTES=$(RUN_MEGABYTES) (run), PREFIX=$(PREFIX) and DESTDIR= (install),"
	@echo "  FUZZ_SECONDS=$(FUZZ_SECONDS) (test-long), CARGO_TARGET_DIR=target"

# --- the libraries and the example ------------------------------------------------------------------------------

lib: ## build libflexfile.so and libflexfile.a (release)
	$(CARGO) build --release --locked -p flex-capi
	@ln -sf libflexfile.so $(LIBDIR)/$(SONAME)

example: check-run-tools lib $(RUN)/file_edit ## compile examples-c/file_edit.c against header and library

$(RUN)/file_edit: $(EXAMPLE_SOURCES) $(EXAMPLE_HEADERS) Makefile
	@mkdir -p $(RUN)
	$(CC) $(WARNINGS) $(CFLAGS) -Iinclude $(EXAMPLE_SOURCES) -o $@ -L$(LIBDIR) -lflexfile -Wl,-rpath,$(LIBDIR)

run: example ## edit a text of 100 MB in place, killed once half-way; FILE=path: your own text
	@rm -rf $(RUN)/space $(RUN)/result.txt
ifeq ($(FILE),)
	@$(PYTHON) examples-c/make_corpus.py $(RUN)/corpus.txt $(RUN)/corpus.idx $(RUN_MEGABYTES)
	@$(RUN)/file_edit $(RUN) $(RUN)/corpus.txt $(RUN)/corpus.idx
else
	@$(RUN)/file_edit $(RUN) '$(FILE)'
endif

# --- tests ------------------------------------------------------------------------------------------------------

test: check-tools lint test-rust test-c test-example test-install ## every test, in minutes; .ci/run calls this
	@echo "make test: everything passed"

test-rust: ## Rust tests, with real and with tiny limits
	$(CARGO) test --workspace --locked
	$(CARGO) test -p flex-core --locked --features small_limits

# The debug build has the engine's assertions and a function that panics; the release build is what users link.
test-c: lib check-header check-symbols ## C tests as C11 and C++17, under AddressSanitizer or valgrind
	$(CARGO) build --locked -p flex-capi --features test_hooks
	flex-capi/tests/c/run.sh $(CARGO_TARGET_DIR)/debug
	KIND=shared flex-capi/tests/c/run.sh $(LIBDIR)

test-example: lib ## the example on a small corpus, under a sanitizer where there is one
	.ci/test-example $(LIBDIR) $(CARGO_TARGET_DIR)/test-example $(EXAMPLE_SOURCES)

test-install: lib ## make install into a temporary PREFIX; compile and run the README's example with pkg-config
	MAKE='$(MAKE)' .ci/test-install $(CARGO_TARGET_DIR)/test-install

test-long: ## every crash point, twenty times the random cases, fuzzing (FUZZ_SECONDS per target)
	FLEXFILE_LONG=1 PROPTEST_CASES=5120 $(CARGO) test --workspace --locked
	FLEXFILE_LONG=1 PROPTEST_CASES=5120 $(CARGO) test -p flex-core --locked --features small_limits
	.ci/fuzz $(FUZZ_SECONDS)

lint: ## rustfmt and clippy, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p flex-core --all-targets --locked --features small_limits -- -D warnings

header: ## write include/flexfile.h anew from flex-capi
	flex-capi/tests/header.sh --write

check-header: ## is include/flexfile.h what flex-capi generates?
	flex-capi/tests/header.sh

check-symbols: lib ## does the shared library export what it should, and nothing else?
	flex-capi/tests/symbols.sh $(LIBDIR)

check-tools: ## says which programs are missing, and how to install them
	@.ci/check-tools test

check-run-tools:
	@.ci/check-tools run

# --- benchmarks: a table each, and target/bench/NAME.jsonl --------------------------------------------------------

bench-tree: ## FlexTree beside a plain B+-tree and a sorted array
	$(CARGO) bench --locked -p flex-core --bench tree

bench-file: ## FlexFile beside ext4: random inserts, writes, reads, opening
	$(CARGO) bench --locked -p flex-core --bench file

# --- installation -----------------------------------------------------------------------------------------------

install: lib ## header, libraries and flexfile.pc to $(DESTDIR)$(PREFIX)
	install -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(INSTALL_LIBDIR)/pkgconfig'
	install -m 644 include/flexfile.h '$(DESTDIR)$(INCLUDEDIR)/flexfile.h'
	install -m 644 $(LIBDIR)/libflexfile.a '$(DESTDIR)$(INSTALL_LIBDIR)/libflexfile.a'
	install -m 755 $(LIBDIR)/libflexfile.so '$(DESTDIR)$(INSTALL_LIBDIR)/libflexfile.so.$(VERSION)'
	ln -sf libflexfile.so.$(VERSION) '$(DESTDIR)$(INSTALL_LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(INSTALL_LIBDIR)/libflexfile.so'
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(INSTALL_LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
		-e 's|@VERSION@|$(VERSION)|g' include/flexfile.pc.in > '$(DESTDIR)$(INSTALL_LIBDIR)/pkgconfig/flexfile.pc'
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig 2>/dev/null || true

uninstall: ## remove what install put there
	rm -f '$(DESTDIR)$(INCLUDEDIR)/flexfile.h' '$(DESTDIR)$(INSTALL_LIBDIR)/libflexfile.a' \
		'$(DESTDIR)$(INSTALL_LIBDIR)/libflexfile.so' '$(DESTDIR)$(INSTALL_LIBDIR)/$(SONAME)' \
		'$(DESTDIR)$(INSTALL_LIBDIR)/libflexfile.so.$(VERSION)' '$(DESTDIR)$(INSTALL_LIBDIR)/pkgconfig/flexfile.pc'

clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf $(RUN) $(CARGO_TARGET_DIR)/test-example $(CARGO_TARGET_DIR)/test-install
