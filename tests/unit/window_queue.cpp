#include <tonari/tonari.hpp>

#include "../support/ranks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace tonari {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> writable(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 131 + (i >> 8) + seed);
  return made;
}

/// Runs under every variant, with memory of tonari and of the program.
class Queues : public testing::TestWithParam<std::tuple<test::Variant, bool>> {
 protected:
  static constexpr std::size_t part_bytes = 1 << 20;

  static void run(int ranks, const std::function<void(Job&, Window&)>& body) {
    const auto& [variant, own] = GetParam();
    run_as_threads(
        ranks,
        [&, of_program = own](Job& job) {
          std::vector<std::byte> memory(of_program ? part_bytes : 0);
          Window window = of_program ? Window(job, std::span(memory)) : Window(job, part_bytes);
          body(job, window);
          EXPECT_EQ(window.barrier(), Status::ok);
        },
        variant.settings);
  }
};

TEST_P(Queues, CompleteDescriptorsInTheOrderOfPosting) {
  run(2, [](Job& job, Window& window) {
    if (job.rank() != 0) return;
    std::array<std::uint64_t, 16> values{};
    std::array<Descriptor, 16> pushes;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = i + 1;
      pushes[i] = Descriptor::push(window.at(JobRank{1}, 8 * i), bytes_of(values[i]));
    }
    Queue queue(window);

    ASSERT_EQ(queue.post(pushes), Status::ok);

    for (Descriptor& each : pushes) {
      EXPECT_EQ(queue.wait(), &each);
      EXPECT_TRUE(each.complete());
      EXPECT_EQ(each.status, Status::ok);
    }
    EXPECT_EQ(queue.wait(), nullptr);
    EXPECT_EQ(queue.poll(), nullptr);
    std::array<std::uint64_t, 16> back{};
    EXPECT_EQ(window.pull(std::as_writable_bytes(std::span(back)), window.at(JobRank{1})), Status::ok);
    EXPECT_EQ(back, values);
  });
}

TEST_P(Queues, CopyManyInOrderAndLetEachFailAlone) {
  run(2, [](Job& job, Window& window) {
    if (job.rank() != 0) return;
    constexpr std::uint64_t many = 200;  // more than one system call takes
    constexpr std::uint64_t wrong = 70;
    std::array<std::uint64_t, many> values{};
    std::array<std::uint64_t, many> seen{};
    std::vector<Descriptor> batch;
    for (std::uint64_t i = 0; i < many; ++i) {
      values[i] = i + 1;
      const std::uint64_t offset = i == wrong ? part_bytes - 4 : 8 * (i / 2);  // each offset is written twice
      batch.push_back(Descriptor::push(window.at(JobRank{1}, offset), bytes_of(values[i])));
    }
    for (std::uint64_t i = 0; i < many; ++i) {
      batch.push_back(Descriptor::pull(writable(seen[i]), window.at(JobRank{1}, 8 * i)));
    }
    Queue queue(window);

    ASSERT_EQ(queue.post(batch), Status::ok);
    EXPECT_EQ(queue.wait_all(), Status::bounds);

    for (std::uint64_t i = 0; i < 2 * many; ++i) {
      EXPECT_EQ(batch[i].status, i == wrong ? Status::bounds : Status::ok) << i;
    }
    for (std::uint64_t i = 0; i < many; ++i) EXPECT_EQ(seen[i], i < many / 2 ? 2 * (i + 1) : 0) << i;
  });
}

TEST_P(Queues, AllowTheirWindowToBeFreedOnceTheyEnd) {
  run(2, [](Job& job, Window& control) {
    const auto from = pattern(part_bytes / 2, 1);
    for (int turn = 0; turn < 30; ++turn) {
      std::vector<std::byte> memory(part_bytes);
      std::optional<Window> window(std::in_place, job, std::span(memory));
      const GlobalAddress other = window->at(job.neighbour(1));
      if (job.rank() == 0) {
        {
          std::array batch{Descriptor::push(other, from), Descriptor::barrier()};
          Queue queue(*window);
          ASSERT_EQ(queue.post(batch), Status::ok);
          ASSERT_EQ(queue.wait_all(), Status::ok);
        }
        window.reset();
      } else {
        ASSERT_EQ(window->barrier(), Status::ok);
      }
      ASSERT_EQ(control.barrier(), Status::ok);
      if (job.rank() == 1) {
        ASSERT_EQ(window->push(other, std::span(from).first(8)), Status::bounds);
      }
      ASSERT_EQ(control.barrier(), Status::ok);
    }
  });
}

TEST_P(Queues, RefuseMalformedAtomicDescriptors) {
  run(2, [](Job& job, Window& window) {
    if (job.rank() != 0) return;
    Queue queue(window);
    for (const int bytes : {0, 1, 2, 3, 5, 16, 255}) {
      Descriptor wrong = Descriptor::fetch_add(window.at(JobRank{1}), std::uint64_t{1});
      wrong.words.bytes = static_cast<std::uint8_t>(bytes);
      ASSERT_EQ(queue.post(wrong), Status::ok);
      EXPECT_EQ(queue.wait_all(), Status::invalid);
    }
    Descriptor wrong = Descriptor::fetch_add(window.at(JobRank{1}), std::uint64_t{1});
    wrong.words.operation = static_cast<detail::AtomicOperation>(77);
    ASSERT_EQ(queue.post(wrong), Status::ok);
    EXPECT_EQ(queue.wait_all(), Status::invalid);
    std::uint64_t word = 1;
    EXPECT_EQ(window.pull(writable(word), window.at(JobRank{1})), Status::ok);
    EXPECT_EQ(word, 0U);
  });
}

TEST_P(Queues, HoldALockAroundTheDescriptorsOfItsBatch) {
  run(3, [](Job&, Window& window) {
    constexpr std::uint64_t rounds = 50;
    Queue queue(window);
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      std::array batch{Descriptor::lock(JobRank{0}),
                       Descriptor::fetch_add(window.at(JobRank{1}), std::uint64_t{1}),
                       Descriptor::pull(writable(first), window.at(JobRank{1})),
                       Descriptor::fetch_add(window.at(JobRank{2}), std::uint64_t{1}),
                       Descriptor::pull(writable(second), window.at(JobRank{2})),
                       Descriptor::unlock(JobRank{0})};
      ASSERT_EQ(queue.post(batch), Status::ok);
      ASSERT_EQ(queue.wait_all(), Status::ok);
      EXPECT_EQ(first, second);
      EXPECT_EQ(batch[1].result + 1, first);
      EXPECT_GT(first, last);
      last = first;
    }
    EXPECT_EQ(window.barrier(), Status::ok);
    EXPECT_EQ(window.fetch_add(window.at(JobRank{1}), std::uint64_t{0}).value, 3 * rounds);
  });
}

TEST_P(Queues, WorkWhileThePosterComputes) {
  run(2, [](Job& job, Window& window) {
    const auto out = pattern(part_bytes / 2, 3);
    std::vector<std::byte> in(out.size());
    std::atomic<std::uint64_t> done{0};
    const int other = 1 - job.rank().value();
    std::array batch{Descriptor::push(window.at(JobRank{other}), out), Descriptor::barrier(),
                     Descriptor::pull(in, window.at(JobRank{other}))};
    Queue queue(window, done);

    ASSERT_EQ(queue.post(batch), Status::ok);
    while (done.load(std::memory_order_acquire) < batch.size())
      std::this_thread::yield();  // this loop stands for a computation

    for (const Descriptor& each : batch) {
      EXPECT_TRUE(each.complete());
      EXPECT_EQ(each.status, Status::ok);
    }
    EXPECT_EQ(in, out);
    EXPECT_EQ(queue.wait(), nullptr);
  });
}

TEST_P(Queues, ExecuteEveryPrimitive) {
  run(2, [](Job& job, Window& window) {
    const int other = 1 - job.rank().value();
    auto data = pattern(4096, 1);
    const auto twin = pattern(4096, 1);
    data[17] = std::byte{0xff};
    const std::array regions{Region{0, 10}, Region{100, 1}, Region{4000, 96}};
    std::vector<std::byte> in(4096);
    std::vector<std::byte> twin_in(4096);
    std::vector<std::byte> parts_in(4096);
    const std::uint64_t mine = 200'000 + 8192 * static_cast<std::uint64_t>(job.rank().value());
    const std::array targets{window.at(JobRank{other}, mine), window.at(job.rank(), mine)};
    std::array batch{Descriptor::push_regions(window.at(JobRank{other}, 65536), data, regions),
                     Descriptor::push_diff(window.at(JobRank{other}, 70000), data, twin),
                     Descriptor::barrier(),
                     Descriptor::pull_with_twin(in, twin_in, window.at(JobRank{other}, 65536)),
                     Descriptor::pull_regions(parts_in, window.at(JobRank{other}, 65536), regions),
                     Descriptor::multicast(targets, data),
                     Descriptor::multicast_regions(targets, data, regions),
                     Descriptor::barrier_with_multicast(16384 + 64 * static_cast<std::uint64_t>(job.rank().value()),
                                                        std::span(data).first(64)),
                     Descriptor::push_notified(window.at(JobRank{other}, 30000), std::span(data).first(8), 1),
                     Descriptor::swap(window.at(JobRank{other}, 40000), std::uint32_t{7}),
                     Descriptor::compare_and_swap(window.at(JobRank{other}, 40000), 7, 8),
                     Descriptor::lock(JobRank{other}, 0, LockMode::shared),
                     Descriptor::unlock(JobRank{other}),
                     Descriptor::flush()};
    Queue queue(window);

    ASSERT_EQ(queue.post(batch), Status::ok);
    EXPECT_EQ(queue.wait_all(), Status::ok);

    EXPECT_EQ(window.wait_notified(1, 1), Status::ok);
    EXPECT_EQ(batch[1].result, 1u);
    EXPECT_EQ(batch[9].result, 0u);
    EXPECT_EQ(batch[10].result, 7u);
    EXPECT_EQ(in, twin_in);
    for (const Region& region : regions) {
      EXPECT_EQ(std::memcmp(parts_in.data() + region.offset, data.data() + region.offset, region.bytes), 0);
    }
    EXPECT_EQ(window.local()[70017], std::byte{0xff});
    EXPECT_EQ(window.local()[70016], std::byte{0});
    EXPECT_EQ(std::memcmp(window.local().data() + 16384 + 64 * other, data.data(), 64), 0);
    EXPECT_EQ(std::memcmp(window.local().data() + mine, data.data(), data.size()), 0);
  });
}

TEST_P(Queues, ReportTheStatusOfAWrongDescriptorAndGoOn) {
  run(2, [](Job& job, Window& window) {
    const int other = 1 - job.rank().value();
    const std::uint64_t value = 5;
    std::array batch{Descriptor::push(window.at(JobRank{other}, part_bytes - 7), bytes_of(value)),
                     Descriptor::push(window.at(JobRank{other}), {static_cast<const std::byte*>(nullptr), 8}),
                     Descriptor::unlock(JobRank{other}), Descriptor::lock(JobRank{other}, 99),
                     Descriptor::push(window.at(JobRank{other}), bytes_of(value))};
    Queue queue(window);

    ASSERT_EQ(queue.post(batch), Status::ok);

    EXPECT_EQ(queue.wait_all(), Status::bounds);
    EXPECT_EQ(queue.wait_all(), Status::ok);
    EXPECT_EQ(batch[0].status, Status::bounds);
    EXPECT_EQ(batch[1].status, Status::invalid);
    EXPECT_EQ(batch[2].status, Status::invalid);
    EXPECT_EQ(batch[3].status, Status::bounds);
    EXPECT_EQ(batch[4].status, Status::ok);
  });
}

TEST_P(Queues, RefuseDescriptorsThatAreEmptyOrPostedAlready) {
  run(2, [](Job& job, Window& window) {
    const std::uint64_t value = 5;
    Queue queue(window);
    std::array batch{Descriptor::push(window.at(job.neighbour(1)), bytes_of(value)), Descriptor{}};
    EXPECT_EQ(queue.post(batch), Status::invalid);
    EXPECT_EQ(queue.post(batch[0]), Status::ok);
    EXPECT_EQ(queue.post(batch[0]), Status::invalid);  // it has not been collected yet
    EXPECT_EQ(queue.wait(), &batch[0]);
    EXPECT_EQ(queue.post(batch[0]), Status::ok);
  });
}

TEST_P(Queues, RunIndependentlyOfEachOther) {
  run(2, [](Job& job, Window& window) {
    if (job.rank() == 0) {
      EXPECT_EQ(window.lock(JobRank{0}), Status::ok);
    }
    EXPECT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 1) {
      Queue waits(window);
      Queue goes_on(window);
      Descriptor lock = Descriptor::lock(JobRank{0});
      const auto out = pattern(part_bytes / 2, 9);
      Descriptor push = Descriptor::push(window.at(JobRank{0}), out);
      EXPECT_EQ(waits.post(lock), Status::ok);
      EXPECT_EQ(goes_on.post(push), Status::ok);
      EXPECT_EQ(goes_on.wait(), &push);
      EXPECT_FALSE(lock.complete());
      EXPECT_EQ(waits.poll(), nullptr);
      EXPECT_EQ(window.push_notified(window.at(JobRank{0}), {}, 0), Status::ok);
      EXPECT_EQ(waits.wait(), &lock);
      EXPECT_EQ(lock.status, Status::ok);
      EXPECT_EQ(window.unlock(JobRank{0}), Status::ok);
    } else {
      EXPECT_EQ(window.wait_notified(0, 1), Status::ok);
      EXPECT_EQ(window.unlock(JobRank{0}), Status::ok);
    }
  });
}

std::string name_of_case(const testing::TestParamInfo<Queues::ParamType>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) ? "Own" : "Ours");
}
INSTANTIATE_TEST_SUITE_P(Each, Queues,
                         testing::Combine(testing::ValuesIn(test::variants_and_network()), testing::Bool()),
                         name_of_case);

}  // namespace
}  // namespace tonari
