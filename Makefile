# Makefile -- the verbs. Meson builds and tests; nothing is built here. `make help` lists them.
#
# Each kind of build has a directory below build/ and a line of options here. A changed Makefile
# makes them anew, so that no directory keeps options nobody asked for any more.

B := build
BUDGET ?= short
SECONDS ?= 60
SEED ?=
FROM ?= release
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
VERSION ?=

CC_release := $(CC)
CC_dev     := gcc
CC_clang   := clang
CC_asan    := clang
CC_tsan    := clang
CC_fuzz    := clang

# A finding needs no more than the lines of the source.
SANITIZED := -Dwerror=true -Db_lundef=false -Ddebug=false -Dc_args=-gline-tables-only
OPTS_release := -Dtests=false -Doptimization=3 -Db_lto=true
OPTS_dev     := -Dwerror=true
OPTS_clang   := -Dwerror=true -Doptimization=0
OPTS_asan    := $(SANITIZED) -Doptimization=1 -Dprocesses=false -Db_sanitize=address,undefined
OPTS_tsan    := $(SANITIZED) -Dprocesses=false -Db_sanitize=thread
OPTS_fuzz    := $(SANITIZED) -Dprocesses=false -Db_sanitize=address,undefined -Dfuzz=true

REALCLIENT := $(addprefix tests/realclient/,lk marks power power_files referee storm) $(addprefix tests/bench/,handles lockers)
TEST := tools/run-tests $(BUDGET)
ninja = out=$$(ninja -C $(1) 2>&1) || { printf '%s\n' "$$out"; exit 1; }
suites = $(foreach suite,$(1),--suite $(suite))

.PHONY: build peer check clang asan tsan lint tidy format sim sim-mutants fuzz bench profile realclient install deb package clean help
.SECONDARY:

build: $(B)/release/build.ninja
	@$(call ninja,$(B)/release src/cli/holdfast src/daemon/holdfastd)
	@install -m 755 $(B)/release/src/cli/holdfast $(B)/release/src/daemon/holdfastd $(B)/
	@echo "holdfast: built $(B)/holdfast (the command) and $(B)/holdfastd (the server it starts)"

peer: $(B)/release/build.ninja
	@$(call ninja,$(B)/release tests/peer/peer)
	@install -m 755 $(B)/release/tests/peer/peer $(B)/
	@echo "holdfast: built $(B)/peer (a fake client)"

check: $(B)/dev/build.ninja
	@$(TEST) $(B)/dev

clang: $(B)/clang/build.ninja $(B)/asan/build.ninja
	@TARGETS=$$(tools/clang-targets $(B)/clang $(B)/asan) $(TEST) $(B)/clang $(call suites,vectors)

asan: $(B)/asan/build.ninja
	@for count in SIM_SEEDS LOCK_OPS; do \
		export "HOLDFAST_$$count=$$(tools/budget $(BUDGET) | sed -n "s/.*_$${count}_ASAN=//p")"; \
	done; \
	$(TEST) $(B)/asan $(call suites,unit vectors fuzz sim)

tsan: $(B)/tsan/build.ninja
	@TARGETS=tests/unit/store/test_worker $(TEST) $(B)/tsan store/worker

lint: $(B)/dev/build.ninja $(B)/release/build.ninja
	@$(call ninja,$(B)/dev)
	@export $$(tools/budget $(BUDGET)); exec tools/lint $(B)/dev $(B)/release $(LINT)

tidy: $(B)/dev/build.ninja $(B)/release/build.ninja
	@export $$(tools/budget $(BUDGET)); exec tools/lint $(B)/dev $(B)/release tidy

format:
	@find src tests -name '*.[ch]' -exec clang-format -i {} +

sim: $(B)/dev/build.ninja
	@$(call ninja,$(B)/dev tests/sim/sim)
	@$(B)/dev/tests/sim/sim $(if $(SEED),--seed $(SEED) --verbose,--seconds $(SECONDS) --marks)

sim-mutants:
	@tests/sim/run-mutants $$(tools/budget $(BUDGET) | sed -n 's/.*MUTANT_SEEDS=//p')

fuzz: $(B)/fuzz/build.ninja
	@$(call ninja,$(B)/fuzz)
	@tools/run-fuzz $(B)/fuzz $(SECONDS)

bench: $(B)/release/build.ninja
	@[ "$$(id -u)" -ne 0 ] || tools/install-packages bench || echo "bench: goes on with what is there"
	@$(call ninja,$(B)/release src/daemon/holdfastd bench-tools)
	@tests/bench/run $(B)/release/src/daemon/holdfastd $(B)/release/tests/bench $(B)/bench \
		$(if $(COMPARE),--compare $(abspath $(COMPARE))) $(if $(ROWS),--only $(ROWS))

profile: $(B)/release/build.ninja
	@[ "$$(id -u)" -ne 0 ] || tools/install-packages profile || echo "profile: goes on with what is there"
	@$(call ninja,$(B)/release src/daemon/holdfastd tests/bench/locks)
	@tools/profile $(B)/release/src/daemon/holdfastd $(B)/release/tests/bench/locks $(STORED)

realclient: $(B)/$(FROM)/build.ninja
	@[ "$$(id -u)" -ne 0 ] || tools/install-packages realclient || echo "realclient: goes on with what is there"
	@$(call ninja,$(B)/$(FROM) src/cli/holdfast src/daemon/holdfastd $(REALCLIENT))
	@export $$(tools/budget $(BUDGET)); \
	exec tests/realclient/run $(B)/$(FROM)/src/daemon/holdfastd $(B)/$(FROM)/tests/realclient \
		$(B)/realclient $(SCENARIOS)

install: $(B)/release/build.ninja
	@meson setup --reconfigure $(B)/release -Dprefix=$(PREFIX) -Dsysconfdir=$(SYSCONFDIR) >$(B)/release/setup.log
	@$(call ninja,$(B)/release product)
	@DESTDIR=$(DESTDIR) meson install --no-rebuild --quiet -C $(B)/release
	@echo "holdfast: installed below $(DESTDIR)$(PREFIX); the configuration is $(DESTDIR)$(SYSCONFDIR)/holdfast.conf"

deb:
	@[ "$$(id -u)" -ne 0 ] || tools/install-packages build package
	@tools/make-deb $(B)/deb $(VERSION)

package:
	@[ "$$(id -u)" -ne 0 ] || tools/install-packages build package || echo "package: goes on with what is there"
	@tests/package/run $(B)/package $(SCENARIOS)

clean:
	rm -rf $(B)

help:
	@echo "make                         release build: $(B)/holdfast, $(B)/holdfastd"
	@echo "make peer                    $(B)/peer, a fake client to try the server with"
	@echo "make check                   every test, built with gcc"
	@echo "make clang                   everything built with clang, and the vectors; make asan runs the rest"
	@echo "make asan                    unit, vectors, corpora, simulation with address, undefined, leak checks"
	@echo "make tsan                    the store thread under the thread sanitizer"
	@echo "make lint                    layout, layers, purity, house rules, cppcheck, shellcheck, clang-tidy; ./test itself"
	@echo "make lint LINT=quick         the same without clang-tidy, which takes longest"
	@echo "make tidy                    only clang-tidy; HOLDFAST_TIDY_NODES=225000: how far it follows a function"
	@echo "make format                  lays out the C files as the lint wants them"
	@echo "make sim SECONDS=60          simulates worlds for so long; lists the marks it never reached"
	@echo "make sim SEED=7              shows one of them, step by step"
	@echo "make sim-mutants             shows that the simulation finds every planted bug"
	@echo "make fuzz SECONDS=60         fuzzes each parser for so long"
	@echo "make bench                   ratios to rpc.statd, sm-notify, nfs-ganesha and a raw echo; writes $(B)/bench/TIME.json"
	@echo "make bench COMPARE=FILE      the same, compared with a saved run; ROWS=calls: only some rows"
	@echo "make profile STORED=0        what a LOCK costs: CPU by thread; instructions and cache misses by stage"
	@echo "make realclient              Linux kernels under QEMU lock through the server; SCENARIOS=a-conflict: only some; FROM=dev: with that build"
	@echo "make install                 below PREFIX ($(PREFIX)), in DESTDIR if set; an existing configuration is kept"
	@echo "make deb                     $(B)/deb/holdfast_VERSION_ARCHITECTURE.deb, the Debian package"
	@echo "make package                 the package in a fresh Debian: install, lock, upgrade, remove, purge"
	@echo "make clean                   removes $(B)/"
	@echo "check, clang, asan, tsan, lint, tidy, sim-mutants, realclient take BUDGET=short|long: the counts of tests/budget"

$(B)/%/build.ninja: Makefile
	@echo "holdfast: preparing $(B)/$*"
	@rm -rf $(B)/$* && mkdir -p $(B)/$*
	@CC=$(CC_$*) meson setup $(B)/$* $(OPTS_$*) >$(B)/$*/setup.log 2>&1 || { cat $(B)/$*/setup.log; exit 1; }
