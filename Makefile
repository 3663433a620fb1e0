# make               build into build/release; the command is build/release/bin/tonari
# make setup         install the packages that building, testing and the demo need
# make demo          run small programs that show what works; installs what is missing and builds first
# make test          build with assertions and run the tests; installs what is missing
# make test-bench    tests of the benchmarks
# make test-far      tests with other projects' programs in far memory, and the benchmark of far memory
# make test-mpi      programs written for MPI, and other projects' tests of MPI, on tonari's MPI
# make test-cluster  tests on several hosts, made of network namespaces
# make test-verbs    tests over RDMA verbs, in a virtual machine
# make test-aarch64  tests with ranks on an emulated aarch64 processor
# make check-model   check every interleaving of the guarded-data protocol with the model checker spin
# make bench         measure tonari beside the MPIs of this machine, and beside swapping (as root), for hours: the
#                    last part, programs of other projects, may take six
# make hot-paths     count locks, system calls, cache lines and instructions of the hot paths (docs/hot-paths.md)
# make soak          run the long forms of the tests
# make docs          write the API reference to build/docs/html/index.html
# make format, make lint, make install [PREFIX=/usr/local]

PREFIX ?= /usr/local
sources = git ls-files '*.cpp' '*.hpp' '*.h'

all:
	@scripts/build release

setup:
	@scripts/setup

test: setup
	@scripts/test dev -L 'unit|contract|fuzz|house|^mpi$$' -j "$$(nproc)"
	@scripts/test dev -L '^system$$'

test-bench: setup
	@scripts/build dev --target benchmarks
	@scripts/test dev -L bench

test-far:
	@scripts/setup far
	@scripts/build dev --target benchmarks
	@scripts/test dev -L 'far|system-long'

test-mpi:
	@scripts/setup mpi
	@scripts/test dev -L mpi

test-cluster:
	@scripts/setup cluster
	@scripts/build dev --target benchmarks
	@scripts/test dev -L cluster

test-verbs:
	@scripts/setup verbs
	@scripts/build dev --target benchmarks
	@scripts/test dev -L verbs

test-aarch64:
	@scripts/setup aarch64
	@scripts/test aarch64 -L 'contract|fuzz'
	@scripts/test dev -L aarch64

check-model:
	@scripts/setup model
	@tests/model/check

demo: setup
	@[ -x build/release/bin/tonari ] || echo "tonari is built first: about 10 minutes on 2 cores. The demo takes less than a minute."
	@scripts/build release
	@scripts/demo

bench:
	@scripts/setup bench
	@scripts/setup programs || echo "bench: programs that are not installed are left out"
	@scripts/build release
	@scripts/bench

hot-paths:
	@scripts/setup hotpaths
	@scripts/build release
	@scripts/hot-paths

soak:
	@scripts/setup far
	@scripts/setup mpi
	@scripts/setup cluster
	@scripts/setup mpi
	@scripts/mpi lammps
	@scripts/soak

docs:
	@scripts/setup docs
	@scripts/docs

format:
	@scripts/setup lint
	@$(sources) | xargs clang-format -i

lint:
	@scripts/setup lint
	@scripts/lint

# ldconfig, so that programs find the new libtonari.so where its folder is one that the system searches. With DESTDIR the
# files are for another system.
install: all
	@cmake --install build/release --prefix '$(PREFIX)'
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" -ne 0 ] || ldconfig

.PHONY: all setup test test-bench test-far test-mpi test-cluster test-verbs test-aarch64 check-model demo bench hot-paths soak docs format lint install
