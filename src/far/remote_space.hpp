#pragma once

#include "far/channel.hpp"
#include "pager/fault_inbox.hpp"
#include "pager/space.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::far {

/// A program's address space, seen from its keeper. Operations that only work inside the address space are done by the
/// agents there. Agents also copy between their buffers and the memory that both processes map: the scratch memory, and
/// the memory that servers on this host lend.
///
/// If there are `tables`, the program's threads serve their own faults, and pass on what they cannot serve.
///
/// Owns:    nothing of the program's. The channel, in `memory`, `lent` and `tables` outlive it.
/// Costs:   two wake-ups between processes for each operation.
class RemoteSpace final : public pager::Space {
 public:
  RemoteSpace(pager::Userfaultfd faults, std::span<std::byte> memory, std::span<std::byte> lent,
              std::span<std::byte> tables);

  /// Says that the address space has ended: threads that wait for an agent go on, and later calls do not wait. Any
  /// thread.
  void end() noexcept;
  [[nodiscard]] bool has_ended() const noexcept override { return ended_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::size_t buffers() const noexcept override { return channel_.buffers; }
  void prepare(pager::Address start, std::size_t bytes) override;
  void drop(pager::Address start, std::size_t bytes) noexcept override;
  pager::PageSet take_out(pager::Address block, const pager::PageSet& pages, pager::Buffer buffer, Sums sums,
                          pager::SharedPages shared) noexcept override;
  [[nodiscard]] bool is_helper(std::uint32_t thread) const noexcept override;
  /// From now on, pages may be shared with a forked child, and cannot be moved before they are copied.
  void has_forked() noexcept { has_forked_.store(true, std::memory_order_relaxed); }
  pager::PageSet move_in(pager::Address block, const pager::PageSet& pages, pager::Buffer buffer) noexcept override;
  bool prefault(pager::Buffer buffer) noexcept override;
  void empty(pager::Buffer buffer) noexcept override;
  std::byte* view(pager::Buffer buffer) noexcept override;
  std::span<std::byte, pager::block_bytes> scratch(std::size_t worker) noexcept override;
  bool fill(pager::Buffer buffer, const std::byte* from, const pager::PageSet& pages, Sums sums) noexcept override;
  bool read(pager::Buffer buffer, const pager::PageSet& pages, std::size_t first, std::byte* to) noexcept override;

  std::span<const pager::Fault> read_faults() noexcept override;
  bool wait_for_faults() noexcept override;
  void stop_waiting() noexcept override;
  void wake_waiting(pager::Address start, const std::atomic<std::uint32_t>& word) noexcept override;
  std::span<std::byte> tables(pager::Address start, std::size_t bytes, std::size_t table_bytes) override;
  pager::Tally& tally() noexcept override;
  std::uint64_t reference_to(std::span<const std::byte> bytes) noexcept override;
  [[nodiscard]] bool drops_in_place() const noexcept override { return threads_serve(); }
  pager::PageSet protect(pager::Address block, const pager::PageSet& pages, Sums sums) noexcept override;
  bool read_in_place(pager::Address block, const pager::PageSet& pages, std::size_t first,
                     std::byte* to) noexcept override;
  pager::PageSet drop_protected(pager::Address block, const pager::PageSet& pages,
                                const pager::PageSet& going) noexcept override;

 private:
  [[nodiscard]] bool threads_serve() const noexcept { return !tables_.empty(); }
  struct Question {
    Command::What what;
    pager::Buffer buffer = pager::no_buffer;
    pager::Address address = 0;
    std::size_t bytes = 0;
    bool copies = false;
    const std::byte* shared = nullptr;
    std::size_t first = 0;
    pager::PageSet pages{};
    pager::PageSet going{};
  };
  struct Reply {
    bool done = false;
    pager::PageSet pages{};
  };
  Reply ask(const Question& question, std::optional<Sums> sums = std::nullopt) noexcept;
  void put(const Question& question, Command& command) const noexcept;
  Command& take() noexcept;
  void wait(Command& command) noexcept;

  Channel& channel_;
  std::span<std::byte> scratch_;
  std::span<std::byte> lent_;
  std::span<std::byte> tables_;
  std::size_t tables_used_ = 0;
  pager::FaultInbox inbox_;              // used only if threads_serve()
  std::atomic<bool> has_forked_{false};  // relaxed: seen late, such pages stay a little longer
  std::atomic<bool> ended_{false};       // see end()
};

}  // namespace tonari::far
