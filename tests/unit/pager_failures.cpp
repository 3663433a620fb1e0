#include "../support/pager.hpp"

#include <tonari/status.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <memory>

// Tests of sources that fail, and of forked children.
namespace tonari {
namespace {

using pager::Failure;
using pager::page_bytes;
using test::Paged;
using test::write_all;
using test::wrong_pages;

constexpr std::size_t mib = 1 << 20;

struct PagerFailures : test::NeedsPaging {};

sigjmp_buf after_signal;
void jump(int /*signal*/) { siglongjmp(after_signal, 1); }

// Returns whether reading this byte raises `signal`.
bool signals(const std::byte& byte, int signal) {
  struct sigaction before {};
  struct sigaction ours {};
  ours.sa_handler = jump;
  ::sigaction(signal, &ours, &before);
  volatile bool signalled = false;
  if (sigsetjmp(after_signal, 1) == 0) {
    (void)*reinterpret_cast<const volatile char*>(&byte);
  } else {
    signalled = true;
  }
  ::sigaction(signal, &before, nullptr);
  return signalled;
}

TEST_F(PagerFailures, AWrongByteFromTheSourceIsReportedAndNeverMapped) {
  for (const bool lets_look : {true, false}) {
    Paged paged(16 * mib, 2 * mib, {}, lets_look);
    write_all(paged.bytes(), 1);
    constexpr std::size_t wrong = 700;  // a page that was evicted long ago
    paged.source.spoil(wrong * page_bytes + 17);

    EXPECT_TRUE(signals(paged.bytes()[wrong * page_bytes], SIGBUS));

    const auto failures = paged.failures();
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(failures.back().what, Failure::What::wrong_bytes);
    EXPECT_EQ(failures.back().region, paged.memory.start());
    EXPECT_EQ(failures.back().page, wrong);
    EXPECT_TRUE(signals(paged.bytes()[wrong * page_bytes], SIGBUS))
        << "a second access to the lost page raised no signal";
    // Its neighbours are intact, and the page itself can be used again once it is discarded.
    EXPECT_EQ(wrong_pages(paged.bytes().first(page_bytes * wrong), 1), 0U);
    EXPECT_EQ(paged.pager.discard(paged.memory.start() + wrong * page_bytes, page_bytes), Status::ok);
    EXPECT_EQ(paged.bytes()[wrong * page_bytes + 17], std::byte{0});
  }
}

TEST_F(PagerFailures, ASourceThatIsGoneRaisesASignalAndDoesNotHang) {
  Paged paged(16 * mib, 2 * mib);
  write_all(paged.bytes(), 1);

  paged.source.gone = true;

  EXPECT_TRUE(signals(paged.bytes()[mib], SIGBUS));
  const auto failures = paged.failures();
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures.back().status, Status::peer_gone);
  if (paged.space.faults().reach() == pager::Reach::everything) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    EXPECT_EQ(::write(pipe[1], &paged.bytes()[mib], 1), -1);
    EXPECT_EQ(errno, EFAULT);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

TEST_F(PagerFailures, ASourceThatIsFullLosesNothing) {
  Paged paged(4 * mib, 2 * mib);
  paged.source.full = true;

  write_all(paged.bytes(), 1);

  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  EXPECT_GT(paged.pager.statistics().times_over_limit, 0U);
  EXPECT_EQ(paged.failures().front().what, Failure::What::store);
  EXPECT_EQ(paged.failures().front().status, Status::no_memory);
  paged.source.full = false;
  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
}

TEST_F(PagerFailures, AForkedChildFaultsCleanlyAndItsParentGoesOn) {
  Paged paged(16 * mib, 2 * mib);
  write_all(paged.bytes(), 1);

  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    for (const std::size_t at : {std::size_t{0}, paged.bytes().size() - 1}) {
      (void)*reinterpret_cast<const volatile char*>(&paged.bytes()[at]);
    }
    ::_exit(0);
  }
  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  write_all(paged.bytes(), 2);
  EXPECT_EQ(wrong_pages(paged.bytes(), 2), 0U);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
#endif
  EXPECT_NE(status, 0);
}

TEST_F(PagerFailures, AForkedChildMayDestroyThePager) {
  auto paged = std::make_unique<Paged>(4 * mib, 2 * mib);
  write_all(paged->bytes(), 1);

  const pid_t child = ::fork();
  if (child == 0) {
    paged.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(wrong_pages(paged->bytes(), 1), 0U);
}

}  // namespace
}  // namespace tonari
