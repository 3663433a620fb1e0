#pragma once

#include "random.hpp"
#include "ranks.hpp"

#include "fabric/engine.hpp"

#include <tonari/tonari.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

// Runs tests of windows with both kinds of memory, with every variant.
namespace tonari::test {

/// The memory of a window: the runtime's own, or the program's.
enum class Owner : std::uint8_t { tonari, program };

/// A window and, if the program provides it, its memory.
struct Part {
  std::vector<std::byte> memory;
  Window window;
};

inline Part make_part(Job& job, const Group& group, Owner owner, std::size_t bytes, const WindowOptions& options = {}) {
  std::vector<std::byte> memory(owner == Owner::program ? bytes : 0);
  Window window =
      owner == Owner::tonari ? Window(job, group, bytes, options) : Window(job, group, std::span(memory), options);
  return {std::move(memory), std::move(window)};
}
inline Part make_part(Job& job, Owner owner, std::size_t bytes, const WindowOptions& options = {}) {
  return make_part(job, Group::first(job.size()), owner, bytes, options);
}
inline Part make_part_alone(Job& job, Owner owner, std::size_t bytes, const WindowOptions& options = {}) {
  std::vector<std::byte> memory(owner == Owner::program ? bytes : 0);
  Window window =
      owner == Owner::tonari ? Window::alone(job, bytes, options) : Window::alone(job, std::span(memory), options);
  return {std::move(memory), std::move(window)};
}

/// Waits until `is_so()` returns true. Lets the job make progress meanwhile.
template <class Condition>
void wait_until(Job& job, Condition is_so) {
  while (!is_so()) {
    fabric::Engine::of(job.session()).progress();
    std::this_thread::yield();
  }
}

/// Lets `victim` die once all ranks have come here (counted in `come`). A rank that is still in an earlier call may
/// need the victim there.
inline void let_die(Job& job, int victim, std::atomic<int>& come) {
  come.fetch_add(1);
  if (job.rank() != victim) return;
  wait_until(job, [&] { return come.load() == job.size(); });
  throw Killed{};
}

/// A test that runs with every variant, and with windows of both kinds of memory.
class OnEveryWindow : public testing::TestWithParam<std::tuple<Variant, Owner>> {
 protected:
  static Owner owner() { return std::get<1>(GetParam()); }
  static bool between_hosts() {
    const std::string& name = std::get<0>(GetParam()).name;
    return name.starts_with("Network") || name == "TwoAHost";
  }
  /// Returns the number of rounds of a test: `usual` where memory is mapped or copied directly, fewer where each access
  /// needs the owner's help.
  static int turns(int usual, bool atomics = false) {
    const bool pieces = std::get<0>(GetParam()).name.starts_with("Pieces");
    const bool helped = between_hosts() || (owner() == Owner::program && (atomics || pieces));
    return rounds(helped ? usual / 10 : usual);
  }
  static void run(int ranks, const std::function<void(Job&)>& body) {
    as_jobs(ranks, body, std::get<0>(GetParam()).settings);
  }
  /// The same with a window to which each rank gives `bytes`. The window exists until all ranks are done.
  static void run(int ranks, std::size_t bytes, const std::function<void(Job&, Window&)>& body,
                  const WindowOptions& options = {}) {
    run(ranks, [&](Job& job) {
      Part part = make_part(job, owner(), bytes, options);
      body(job, part.window);
      if (!HasFatalFailure()) {
        EXPECT_EQ(part.window.barrier(), Status::ok);
      }
    });
  }
};

inline std::string name_of_window(const testing::TestParamInfo<OnEveryWindow::ParamType>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) == Owner::tonari ? "Ours" : "Own");
}
/// The variants that change how windows work. The others change messages only.
inline std::vector<Variant> window_variants() {
  std::vector<Variant> chosen = variants_and_network();
  std::erase_if(chosen, [](const Variant& each) {
    return each.name == "SmallestRing" || each.name == "NothingInHeads" || each.name == "SmallChunks";
  });
  return chosen;
}
inline auto windows_of(std::vector<Variant> chosen) {
  return testing::Combine(testing::ValuesIn(std::move(chosen)), testing::Values(Owner::tonari, Owner::program));
}

inline std::span<const std::byte> bytes_of(const auto& value) { return std::as_bytes(std::span(&value, 1)); }
inline std::span<std::byte> writable_bytes_of(auto& value) { return std::as_writable_bytes(std::span(&value, 1)); }

/// Runs `body(number)` in `count` threads of this rank. The calling thread is number 0.
inline void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::jthread> others;
  for (int number = 1; number < count; ++number) others.emplace_back([&body, number] { body(number); });
  body(0);
}

}  // namespace tonari::test
