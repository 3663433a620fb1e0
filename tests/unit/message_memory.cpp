#include "../support/ranks.hpp"
#include "../support/require.hpp"

#include <malloc.h>

// Measures the memory that waiting messages take, by the allocator's own statistics.
namespace tonari {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool allocator_is_its_own = false;
#else
constexpr bool allocator_is_its_own = true;
#endif

double bytes_in_use() {
  const struct mallinfo2 of_all_threads = ::mallinfo2();
  return static_cast<double>(of_all_threads.uordblks + of_all_threads.hblkhd);
}

struct Waiting {
  std::size_t messages;
  std::size_t tail_bytes;  // 0 for a payload that fits into its head
  std::size_t payload_bytes;
};
void PrintTo(const Waiting& waiting, std::ostream* stream) {
  *stream << waiting.messages << " of " << waiting.payload_bytes << " bytes";
}

class WaitingMessages : public testing::TestWithParam<Waiting> {};
INSTANTIATE_TEST_SUITE_P(Of, WaitingMessages,
                         testing::Values(Waiting{10'000, 0, 0}, Waiting{10'000, 0, 40}, Waiting{10'000, 1024, 1024},
                                         Waiting{20'000, 100, 100}, Waiting{100'000, 0, 0}, Waiting{100'000, 0, 40},
                                         Waiting{100'000, 1024, 1024}));

TEST_P(WaitingMessages, TakeLittleMoreThanHeadAndTail) {
  if (!allocator_is_its_own) GTEST_SKIP() << "the allocator of a sanitizer reports other numbers";
  constexpr double head_bytes = 64;
  constexpr double beside_max = 32;
  constexpr int never_sent = 1 << 30;
  const auto [messages, tail_bytes, payload_bytes] = GetParam();
  const auto count = static_cast<int>(messages);
  const auto body = [&](Job& job) {
    Communicator world(job);
    std::vector<std::byte> payload(payload_bytes);
    if (world.rank() == 1) {
      test::require_ok(world.receive(std::span<int>(), Rank{0}).status);
      for (int tag = 0; tag < count; ++tag) test::require_ok(world.send(payload, Rank{0}, Tag{tag}));
      test::require_ok(world.receive(std::span<int>(), Rank{0}).status);
      return;
    }
    EXPECT_FALSE(world.probe_now(Rank{1}, Tag{never_sent}).has_value());
    const double before = bytes_in_use();
    test::require_ok(world.send(std::span<const int>(), Rank{1}));
    while (job.statistics().unexpected_now < messages)
      EXPECT_FALSE(world.probe_now(Rank{1}, Tag{never_sent}).has_value());
    const double each = (bytes_in_use() - before) / static_cast<double>(messages);

    RecordProperty("bytes_each", std::to_string(each));
    EXPECT_LE(each, head_bytes + static_cast<double>(tail_bytes) + beside_max);
    EXPECT_GE(each,
              head_bytes + static_cast<double>(tail_bytes));  // less would show that this test measures something else

    for (int tag = count - 1; tag >= 0; --tag) test::require_ok(world.receive(payload, Rank{1}, Tag{tag}).status);
    EXPECT_LE(bytes_in_use() - before, 128 * 1024) << "memory is kept although no message waits any more";
    test::require_ok(world.send(std::span<const int>(), Rank{1}));
  };
  run_as_threads(2, body, {"TONARI_UNEXPECTED_BYTES=1G"});
}

}  // namespace
}  // namespace tonari
