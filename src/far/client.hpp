#pragma once

#include "base/file_descriptor.hpp"
#include "far/control.hpp"
#include "far/packed_store.hpp"
#include "far/program.hpp"
#include "far/servers.hpp"
#include "far/store.hpp"
#include "pager/pager.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

namespace tonari::far {

/// One process with far memory: its pages, which are carried to the servers and back.
///
/// Owns:    its tie to the process, its store, a pager and its threads, and one that hears the process's requests.
/// Threads: one; `on_failure` is called by those threads.
class Client {
 public:
  using OnFailure = std::function<void(std::string_view why)>;

  /// At the other end of `socket` a process's preload begins. The servers outlive it. Throws SetupError.
  Client(FileDescriptor socket, Servers& servers, const Order& order, const Program::Lent& lent, OnFailure on_failure);
  /// Whoever is still alive in the process ends it.
  ~Client();
  Client(Client&&) = delete;

  enum class Heard {
    nothing,
    begun,  ///< It waits for go().
    gone,   ///< Its address space is.
  };
  /// When descriptor() is readable. Throws SetupError when the process cannot be kept.
  Heard hear();
  [[nodiscard]] int descriptor() const noexcept { return program_.descriptor(); }
  void go() noexcept { program_.go(); }

  /// How much it may have locally. Once it has begun.
  void set_limit(std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t touched_bytes() const noexcept;

  [[nodiscard]] bool has_begun() const noexcept { return pager_.has_value(); }
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept { return store_.lost_bytes(); }
  [[nodiscard]] Statistics statistics() const noexcept;  ///< Of the servers nothing.

  /// What it had at servers is the next one's. Once it is gone.
  void give_all_back() noexcept;

 private:
  void begin();
  void end() noexcept;
  void page_failed(const pager::Failure& failure) noexcept;
  void serve_requests() noexcept;
  [[nodiscard]] int answer(Request& request) noexcept;

  Servers& servers_;
  Order order_;
  OnFailure on_failure_;
  Program program_;
  Store store_;
  std::optional<PackedStore> packed_;     // in it, if the order is so
  std::atomic<std::uint64_t> in_use_{0};  // relaxed: a count
  std::atomic<std::uint64_t> limit_{0};   // relaxed: for people
  std::optional<pager::Pager> pager_;
  std::jthread listener_;
};

/// What any limit is at least: for less there is no room to work in.
inline constexpr std::uint64_t limit_bytes_min = 8ULL << 20;
/// What to say to who has lost a page.
constexpr const char* second_copy(const Order& order) noexcept {
  return order.replicas == 1 ? "--replicas 2 keeps a second copy of all" : "both copies are gone";
}

}  // namespace tonari::far
