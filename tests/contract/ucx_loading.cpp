#include "fabric/ucx/library.hpp"
#include "fabric/ucx/wire.hpp"
#include "ucx_world.hpp"

#include <tonari/status.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// Tests that loading the network does not change the program's own state.
namespace tonari::fabric {
namespace {

/// Runs `work` in a child process, as UCX is loaded once per process. Returns 0 if it returned true.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

/// These tests need a process in which UCX is not loaded yet; only their children load it. ctest starts a process for
/// each test.
struct UcxLoading : testing::Test {
  void SetUp() override {
    if (::dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << "another test has loaded UCX";
    if (in_child([] { return no_ucx().empty(); }) != 0) GTEST_SKIP() << "this machine has no network that UCX can use";
  }
};

TEST_F(UcxLoading, DoesNotChangeTheProgramsSignals) {
  EXPECT_EQ(in_child([] {
              const auto handler = [](int) {};
              for (const int number : {SIGSEGV, SIGBUS, SIGHUP}) ::signal(number, handler);
              const ucx::Wire wire(ucx_settings(1, 0));
              return std::ranges::all_of(std::array{SIGSEGV, SIGBUS, SIGHUP},
                                         [&](int number) { return ::signal(number, SIG_DFL) == +handler; });
            }),
            0);
}

TEST_F(UcxLoading, KeepsTheProgramsChangesBetweenAFailedAttemptAndTheNext) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers need file descriptors to handle an exception";
#endif
  EXPECT_EQ(in_child([] {
              rlimit files{};
              ::getrlimit(RLIMIT_NOFILE, &files);
              const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
              ::setrlimit(RLIMIT_NOFILE, &none);  // so that the library cannot be opened
              bool failed = false;
              try {
                ucx::library();
              } catch (const SetupError&) {
                failed = true;
              }
              ::setrlimit(RLIMIT_NOFILE, &files);
              ::setenv("TONARI_TEST_MEANWHILE", "1", 1);
              ucx::library();
              return failed && std::getenv("TONARI_TEST_MEANWHILE") != nullptr;
            }),
            0);
}

TEST_F(UcxLoading, DoesNotInterceptTheProgramsMemoryCalls) {
  EXPECT_EQ(in_child([] {
              using Code = std::array<std::byte, 16>;
              void* const libc = ::dlopen("libc.so.6", RTLD_NOW);  // a sanitizer may intercept the calls of libc
              const auto code_of = [libc](const char* name) {
                Code code;
                std::memcpy(code.data(), ::dlsym(libc, name), code.size());
                return code;
              };
              const std::array names{"mmap", "munmap", "mremap", "madvise"};
              std::array<Code, names.size()> before;
              std::ranges::transform(names, before.begin(), code_of);
              const ucx::Wire wire(ucx_settings(1, 0));
              return std::ranges::equal(names, before, {}, code_of);
            }),
            0);
}

}  // namespace
}  // namespace tonari::fabric
