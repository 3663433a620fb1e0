# make            build into build/release; the command is build/release/bin/tonari
# make test       build with assertions and run all tests
# make test-far, make test-cluster, make test-verbs, make test-aarch64
#                 tests with programs of others, and the benchmark of far memory; on hosts made of namespaces; over RDMA verbs, in a virtual machine; with ranks of another processor
# make check-model
#                 every interleaving of guarded data's protocol, with spin
# make demo       a tour of what works now, in under two minutes
# make bench      measure against the MPIs of this machine
# make soak       the long forms of the tests
# make format, make lint, make install [PREFIX=/usr/local]

PREFIX ?= /usr/local
sources = git ls-files '*.cpp' '*.hpp'

all:
	@scripts/build release

test:
	@scripts/test dev -L 'unit|contract|fuzz|house' -j "$$(nproc)"
	@scripts/test dev -L system

test-far:
	@scripts/setup far
	@scripts/test dev -L far

test-cluster:
	@scripts/setup cluster
	@scripts/test dev -L cluster

test-verbs:
	@scripts/setup verbs
	@scripts/test dev -L verbs

test-aarch64:
	@scripts/setup aarch64
	@scripts/test aarch64 -L 'contract|fuzz'
	@scripts/test dev -L aarch64

check-model:
	@scripts/setup model
	@tests/model/check

demo: all
	@scripts/demo

bench:
	@scripts/setup bench
	@scripts/build release
	@scripts/bench

soak:
	@scripts/soak

format:
	@scripts/setup lint
	@$(sources) | xargs clang-format -i

lint:
	@scripts/setup lint
	@scripts/build release
	@$(sources) | xargs clang-format --dry-run -Werror
	@git ls-files 'src/*.cpp' | xargs -P $$(nproc) -n 4 clang-tidy -p build/release --quiet --warnings-as-errors='*' 2>/dev/null

install: all
	@cmake --install build/release --prefix '$(PREFIX)'

.PHONY: all test test-far test-cluster test-verbs test-aarch64 check-model demo bench soak format lint install
