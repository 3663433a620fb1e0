#include <tonari/tonari.hpp>

#include "../support/ranks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

namespace tonari {
namespace {

using test::OnEveryVariant;

// Whose memory it is that a window is made of.
enum class Owner : std::uint8_t { tonari, program };

std::span<const std::byte> bytes_of(const auto& value) { return std::as_bytes(std::span(&value, 1)); }
std::span<std::byte> writable(auto& value) { return std::as_writable_bytes(std::span(&value, 1)); }

class Windows : public testing::TestWithParam<std::tuple<test::Variant, Owner>> {
 protected:
  static constexpr std::size_t part_bytes = 100'000;

  static void run(int ranks, const std::function<void(Job&, Window&)>& body, const WindowOptions& options = {}) {
    const auto& [variant, owner] = GetParam();
    run_as_threads(
        ranks,
        [&, owner = owner](Job& job) {
          std::vector<std::byte> memory(owner == Owner::program ? part_bytes : 0);
          Window window =
              owner == Owner::tonari ? Window(job, part_bytes, options) : Window(job, std::span(memory), options);
          body(job, window);
          if (window.barrier() != Status::ok && !testing::Test::HasFailure()) ADD_FAILURE() << "the last barrier";
        },
        variant.settings);
  }
};

TEST_P(Windows, TakeAPushWithoutTheOwnersHelp) {
  run(2, [](Job& job, Window& window) {
    std::vector<std::byte> out(50'000);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7);
    if (job.rank() == 0) {
      EXPECT_EQ(window.push(window.at(1, 123), out), Status::ok);
    }
    EXPECT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 1) {
      EXPECT_EQ(std::memcmp(window.local().data() + 123, out.data(), out.size()), 0);
    }
    std::vector<std::byte> in(out.size());
    EXPECT_EQ(window.pull(in, window.at(1, 123)), Status::ok);
    EXPECT_EQ(in, out);
  });
}

TEST_P(Windows, CountWithAllRanksAtOnce) {
  run(4, [](Job&, Window& window) {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(window.fetch_add(window.at(2, 64), std::uint64_t{1}).status, Status::ok);
    EXPECT_EQ(window.barrier(), Status::ok);
    EXPECT_EQ(window.fetch_add(window.at(2, 64), std::uint64_t{0}).before, 800u);
  });
}

TEST_P(Windows, LockOutOthers) {
  run(4, [](Job&, Window& window) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(window.lock(1), Status::ok);
      std::uint64_t count = 0;
      EXPECT_EQ(window.pull(writable(count), window.at(0)), Status::ok);
      ++count;
      EXPECT_EQ(window.push(window.at(0), bytes_of(count)), Status::ok);
      ASSERT_EQ(window.unlock(1), Status::ok);
    }
    EXPECT_EQ(window.barrier(), Status::ok);
    std::uint64_t count = 0;
    EXPECT_EQ(window.pull(writable(count), window.at(0)), Status::ok);
    EXPECT_EQ(count, 400u);
  });
}

TEST_P(Windows, TellOfAPush) {
  run(2, [](Job& job, Window& window) {
    for (std::uint64_t i = 1; i <= 500; ++i) {
      const int other = 1 - job.rank();
      if (job.rank() == 0) {
        EXPECT_EQ(window.push_notified(window.at(other, 8), bytes_of(i), 3), Status::ok);
      }
      EXPECT_EQ(window.wait_notified(3, i), Status::ok);
      std::uint64_t got = 0;
      std::memcpy(&got, window.local().data() + 8, 8);
      EXPECT_EQ(got, i);
      if (job.rank() == 1) {
        EXPECT_EQ(window.push_notified(window.at(other, 8), bytes_of(i), 3), Status::ok);
      }
    }
  });
}

std::string name_of_case(const testing::TestParamInfo<Windows::ParamType>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) == Owner::tonari ? "Ours" : "Own");
}
INSTANTIATE_TEST_SUITE_P(Each, Windows,
                         testing::Combine(testing::ValuesIn(test::variants()),
                                          testing::Values(Owner::tonari, Owner::program)),
                         name_of_case);

}  // namespace
}  // namespace tonari
