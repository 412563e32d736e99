# pnetc: a pipeline compiler for training neural networks. `make help` lists what there is.
#
# All objects are in build/. Libraries are probed once, into build/config.mk: oneDNN is needed by the cpu target only; its
# absence removes that target and breaks nothing else. The same holds for the CUDA toolkit (CUDA_HOME) and target cuda.

CC        ?= gcc
FLEX      ?= flex
BISON     ?= bison
PREFIX    ?= /usr/local
DESTDIR   ?=
ARCH      ?= native
B         ?= build
OPTIMISE  ?= -O2
V         ?= 0
Q         := $(if $(filter 1,$(V)),,@)
say        = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2))

WARN      := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
STANDARD  := -std=c11 -D_POSIX_C_SOURCE=200809L
# -iquote: compiler/sched.h must not stand in for <sched.h>, which pthread.h reads
INCLUDE   := -iquote compiler -iquote runtime -I$(B)/gen
CFLAGS    ?= -g
BASE      := $(STANDARD) $(INCLUDE) $(OPTIMISE) -ffp-contract=off -pthread $(CFLAGS) $(SANITIZE)
COMPILER_FLAGS := $(BASE) $(WARN) -Wconversion -Wno-sign-conversion
RUNTIME_FLAGS  := $(BASE) -O3 -fno-math-errno $(if $(ARCH),-march=$(ARCH)) $(WARN)

PACKAGES := git gcc g++ clang libclang-rt-dev make flex bison perl python3 zlib1g-dev libjansson-dev libdnnl-dev libcmocka-dev \
            clang-format shellcheck mandoc procps
# Optional, for pictures and for tests of them in a browser: `make deps PICTURES=` leaves them out.
PICTURES  ?= graphviz gnuplot-nox chromium

# ---- sources: one wildcard a room ----
compiler_c := $(filter-out compiler/main.c,$(wildcard compiler/*.c compiler/ops/*.c compiler/schedules/*.c compiler/targets/*.c))
core_c     := $(wildcard runtime/core/*.c runtime/data/*.c runtime/transport/*.c runtime/world/*.c)
ref_c      := $(wildcard runtime/ref/*.c)
cpu_c      := $(wildcard runtime/cpu/*.c)
cuda_c     := $(wildcard runtime/cuda/*.c)
# The evaluator uses the naive kernels and the counter-based random numbers of the runtime.
shared_c   := $(wildcard runtime/ref/kernels*.c) runtime/core/rng.c
unit_c     := $(wildcard tests/unit/*.c)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
compiler_o := $(call obj,$(compiler_c) $(shared_c)) $(B)/obj/gen/pnet.lex.o $(B)/obj/gen/pnet.tab.o
units      := $(patsubst tests/unit/%.c,$(B)/tests/%,$(unit_c))

hash      := \#
have_dnnl := $(shell mkdir -p $(B) && printf '$(hash)include <oneapi/dnnl/dnnl.h>\n' | $(CC) -x c -fsyntax-only - 2>/dev/null && echo yes)
CUDA_HOME ?= /usr/local/cuda
CUDA_INCLUDE := $(firstword $(wildcard $(CUDA_HOME)/include $(CUDA_HOME)/targets/x86_64-linux/include))
have_cuda := $(shell printf '$(hash)include <cuda_runtime_api.h>\n$(hash)include <cudnn.h>\n' | \
                $(CC) $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE)) -x c -fsyntax-only - 2>/dev/null && echo yes)
libraries := $(B)/lib/libpn_core.a $(B)/lib/libpn_ref.a $(if $(have_dnnl),$(B)/lib/libpn_cpu.a) \
             $(if $(have_cuda),$(B)/lib/libpn_cuda.a)
ifeq ($(have_dnnl),)
units     := $(filter-out $(B)/tests/rt_cpu%,$(units))
endif

.PHONY: all cudasim deps run test check san fuzz bench bless install uninstall clean help units
.DELETE_ON_ERROR:
.SECONDARY:

all: $(B)/pnetc $(libraries)

# ---- programs and libraries ----
$(B)/pnetc: $(B)/obj/compiler/main.o $(B)/lib/libpnetc.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANITIZE) -pthread -o $@ $^ -ljansson -lm

$(B)/lib/libpnetc.a: $(compiler_o)
$(B)/lib/libpn_core.a: $(call obj,$(core_c))
$(B)/lib/libpn_ref.a: $(call obj,$(ref_c))
# Losses and dropout are the naive kernels, on every target.
$(B)/lib/libpn_cpu.a: $(call obj,$(cpu_c) $(wildcard runtime/ref/kernels*.c) runtime/ref/host.c)
$(B)/lib/libpn_cuda.a: $(call obj,$(cuda_c))
$(B)/lib/%.a:
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $^

$(B)/obj/compiler/%.o: compiler/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(COMPILER_FLAGS) -MMD -MP -c -o $@ $<
$(B)/obj/runtime/%.o: runtime/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(RUNTIME_FLAGS) -MMD -MP -c -o $@ $<
$(call obj,$(cuda_c)): RUNTIME_FLAGS += $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE))
$(B)/obj/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(BASE) -w -MMD -MP -c -o $@ $<

# The grammar must have no conflict and the scanner no backup.
$(B)/gen/pnet.tab.c $(B)/gen/pnet.tab.h &: grammar/pnet.y
	$(call say,BISON,$<)
	$(Q)mkdir -p $(B)/gen && $(BISON) -Werror -o $(B)/gen/pnet.tab.c --defines=$(B)/gen/pnet.tab.h $<
$(B)/gen/pnet.lex.c $(B)/gen/pnet.lex.h &: grammar/pnet.l
	$(call say,FLEX,$<)
	$(Q)mkdir -p $(B)/gen && cd $(B)/gen && $(FLEX) -Cfe -b -o pnet.lex.c --header-file=pnet.lex.h $(CURDIR)/$< && \
	    { grep -q '^No backing up' lex.backup || { echo "$<: the scanner backs up:"; cat lex.backup; exit 1; }; }
$(call obj,compiler/parse.c compiler/scan.c compiler/layout.c compiler/syntax.c): $(B)/gen/pnet.tab.h $(B)/gen/pnet.lex.h
$(B)/obj/gen/pnet.lex.o: $(B)/gen/pnet.tab.h
$(B)/obj/gen/pnet.tab.o: $(B)/gen/pnet.lex.h
$(B)/gen/pnet.lex.h: | $(B)/gen/pnet.tab.h

# ---- unit tests: rt_cpu_* link the cpu kernels, rt_* the ref kernels, the others the compiler ----
units: $(units)
$(B)/obj/tests/%.o: tests/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(BASE) -Itests $(WARN) -MMD -MP -c -o $@ $<
$(B)/tests/rt_cpu%: $(B)/obj/tests/unit/rt_cpu%.o $(B)/lib/libpn_core.a $(B)/lib/libpn_cpu.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SANITIZE) -pthread -o $@ -Wl,--start-group $^ -Wl,--end-group -lcmocka -ldnnl -lgomp -ljansson -lz -lm
$(B)/tests/rt_%: $(B)/obj/tests/unit/rt_%.o $(B)/lib/libpn_core.a $(B)/lib/libpn_ref.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SANITIZE) -pthread -o $@ -Wl,--start-group $^ -Wl,--end-group -lcmocka -ljansson -lz -lm
$(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/lib/libpnetc.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SANITIZE) -pthread -o $@ $^ -lcmocka -ljansson -lm

# ---- tests/cudasim: a GPU on the CPU, for the programs of the cuda target; C++17, never installed ----
CUDA_HOME ?= /usr/local/cuda
CXX       ?= g++
sim_o     := $(patsubst %.cpp,$(B)/obj/%.o,$(wildcard tests/cudasim/*.cpp))
cudasim: $(B)/tests/libcudasim.so ## build the GPU double (tests/cudasim/README.md)
$(B)/obj/tests/cudasim/%.o: tests/cudasim/%.cpp
	$(call say,CXX,$<)
	$(Q)mkdir -p $(@D) && $(CXX) -std=gnu++17 -O3 -g -fPIC -fvisibility=hidden -Wall -Wextra -Wshadow -Werror \
	    -I$(CUDA_HOME)/include -MMD -MP -c -o $@ $<
$(B)/tests/libcudasim.so: $(sim_o)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -shared -pthread -Wl,--version-script=tests/cudasim/exports.map -o $@ $^ -ldl

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# ---- what people type ----
deps: ## install the Debian packages that building and testing need (a no-op when they are there)
	$(Q)missing=$$(for p in $(PACKAGES) $(PICTURES); do \
	    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || printf '%s ' $$p; done); \
	if [ -z "$$missing" ]; then echo "deps: all packages are installed"; else \
	    echo "deps: installing $$missing"; \
	    if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
	    $$sudo apt-get update -q && \
	    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; fi

run: all ## train LeNet-5 on the built-in digits, in two pipeline stages, in about a minute
	$(Q)$(B)/pnetc run examples/lenet5.pnet

# The double is made once here: tests that run side by side would each make it.
have_sim := $(and $(have_cuda),$(filter x86_64,$(shell uname -m)),$(shell command -v $(CXX)))
test: all units $(if $(have_sim),cudasim) ## run all tests (TAP, under prove)
	$(Q)B=$(B) CMOCKA_MESSAGE_OUTPUT=TAP prove -j2 -e '' --timer tests/*.t $(units)

check: all ## layers, formats, goldens, warnings with gcc and clang
	$(Q)tests/check.sh $(B)

san: ## the tests of compiler and runtime under ASan + UBSan, the threads under TSan
	$(Q)tests/san.sh

fuzz: ## libFuzzer on the parser and on check (SECONDS_EACH=60 by default)
	$(Q)tests/fuzz.sh

bench: all ## what bench/ holds and how to run it
	$(Q)cat bench/README.md

bless: all ## accept the present output as goldens: look at the diff before you commit
	$(Q)BLESS=1 B=$(B) prove -e '' tests/bad.t tests/draw.t tests/dump.t tests/format.t tests/generated.t
	$(Q)git --no-pager diff --stat

install: all ## install to $(DESTDIR)$(PREFIX)
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pnetc $(DESTDIR)$(PREFIX)/include/pnetc \
	    $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 \
	    $(DESTDIR)$(PREFIX)/share/doc/pnetc/examples
	$(Q)install -m 755 $(B)/pnetc $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 644 $(libraries) $(DESTDIR)$(PREFIX)/lib/pnetc/
	$(Q)install -m 644 $(wildcard runtime/pn*.h) $(DESTDIR)$(PREFIX)/include/pnetc/
	$(Q)install -d $(DESTDIR)$(PREFIX)/include/pnetc/cuda/device
	$(Q)install -m 644 runtime/cuda/kernels.cuh $(DESTDIR)$(PREFIX)/include/pnetc/cuda/
	$(Q)install -m 644 runtime/cuda/device/*.cuh $(DESTDIR)$(PREFIX)/include/pnetc/cuda/device/
	$(Q)install -m 644 compiler/man/pnetc.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	$(Q)install -m 644 grammar/pnet.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	$(Q)install -m 644 README.md LICENSE grammar/REFERENCE.md $(DESTDIR)$(PREFIX)/share/doc/pnetc/
	$(Q)install -m 644 examples/*.pnet $(DESTDIR)$(PREFIX)/share/doc/pnetc/examples/

uninstall: ## remove what install put there
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/pnetc $(DESTDIR)$(PREFIX)/share/man/man1/pnetc.1 $(DESTDIR)$(PREFIX)/share/man/man5/pnet.5
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/lib/pnetc $(DESTDIR)$(PREFIX)/include/pnetc $(DESTDIR)$(PREFIX)/share/doc/pnetc

clean: ## remove build/
	$(Q)rm -rf $(B)

help: ## this list
	$(Q)sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18
	$(Q)echo "  variables: CC, CFLAGS, OPTIMISE (-O2), ARCH (native), SANITIZE, PREFIX, DESTDIR, V=1 (show commands)"
