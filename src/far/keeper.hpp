#pragma once

#include "base/file_descriptor.hpp"
#include "far/control.hpp"
#include "far/packed_store.hpp"
#include "far/program.hpp"
#include "far/store.hpp"
#include "pager/pager.hpp"

#include <tonari/job.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace tonari::far {

/// Rank 0 of the servers' job: answers the faults of one program, whose pages it carries to the servers and back.
///
/// Owns:    the pager and its threads, and one that hears the program's requests.
/// Threads: one.
class Keeper {
 public:
  /// Connects to the `tonari far` that listens at `front`. Collective: the servers' part is lend(). Throws SetupError.
  Keeper(Job& job, std::string_view front);
  ~Keeper();
  Keeper(Keeper&&) = delete;

  /// Until `tonari far` closes the connection.
  void run();

 private:
  void hear_order();
  void begin(const Order& order, FileDescriptor socket);
  void hear_program();
  void program_has_gone() noexcept;
  void count_the_dead();
  void follow_use() noexcept;
  void fail(std::string_view why) noexcept;
  void page_failed(const pager::Failure& failure) noexcept;
  void serve_requests() noexcept;
  [[nodiscard]] int answer(const Request& request) noexcept;
  pager::Source& make_source();
  [[nodiscard]] std::uint64_t lent_bytes() const noexcept;
  [[nodiscard]] Program::Lent lent();
  [[nodiscard]] Statistics statistics() const noexcept;
  [[nodiscard]] std::uint64_t limit_for(std::uint64_t touched_bytes) const noexcept;

  Job& job_;
  Window window_;
  FileDescriptor control_;
  std::shared_ptr<FileDescriptor> deaths_;  // counts; the job's handler has it, too
  FileDescriptor clock_;                    // ticks while the limit is a share of what is used
  bool closed_ = false;
  Order order_{};
  Statistics at_end_{};
  std::vector<int> servers_;  // that live
  std::optional<Store> store_;
  std::optional<PackedStore> packed_;  // in it, if the order is so
  std::optional<Program> program_;
  std::optional<pager::Pager> pager_;
  std::atomic<std::uint64_t> in_use_{0};  // relaxed: a count
  std::atomic<std::uint64_t> limit_{0};   // relaxed: for people
  std::atomic<bool> failed_{false};       // relaxed: only the first is told
  std::jthread listener_;
};

/// The other ranks: gives `bytes` of this rank's memory to the job, and stays until the keeper leaves. `at_once`: all
/// of it is there before the keeper is told, or SetupError.
void lend(Job& job, std::uint64_t bytes, bool at_once);

}  // namespace tonari::far
