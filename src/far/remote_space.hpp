#pragma once

#include "far/channel.hpp"
#include "pager/space.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <span>

namespace tonari::far {

/// A program's address space, seen from its keeper. What only works inside is asked of the agent there; bytes of
/// buffers are copied by the kernel (process_vm_readv, process_vm_writev).
///
/// Owns:    nothing of the program's. The channel outlives it.
/// Costs:   two wake-ups between processes for each operation of the agent's.
class RemoteSpace final : public pager::Space {
 public:
  RemoteSpace(pager::Userfaultfd faults, Channel& channel, const Hello& hello, pid_t program) noexcept;

  /// The address space is gone: whoever waits for the agent goes on, and nobody waits any more. Any thread.
  void end() noexcept;
  [[nodiscard]] bool has_ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::size_t buffers() const noexcept override { return channel_.buffers; }
  void prepare(pager::Address start, std::size_t bytes) override;
  void drop(pager::Address start, std::size_t bytes) noexcept override;
  pager::PageSet take_out(pager::Address block, const pager::PageSet& pages, pager::Buffer buffer) noexcept override;
  pager::PageSet move_in(pager::Address block, const pager::PageSet& pages, pager::Buffer buffer) noexcept override;
  bool stock(pager::Buffer buffer) noexcept override;
  void empty(pager::Buffer buffer) noexcept override;
  std::byte* view(pager::Buffer buffer, std::size_t place) noexcept override;
  bool read(pager::Buffer buffer, std::size_t place, std::span<std::byte> into) noexcept override;
  bool write(pager::Buffer buffer, std::size_t place, std::span<const std::byte> from) noexcept override;

 private:
  struct Question {
    Command::What what;
    pager::Buffer buffer = pager::no_buffer;
    pager::Address address = 0;
    std::size_t bytes = 0;
    pager::PageSet pages{};
  };
  struct Reply {
    bool done = false;
    pager::PageSet pages{};
  };
  Reply ask(const Question& question) noexcept;
  Command& take() noexcept;
  void wait(Command& command) noexcept;
  [[nodiscard]] pager::Address address_of(pager::Buffer buffer, std::size_t place) const noexcept;

  Channel& channel_;
  pager::Address buffers_;
  pid_t program_;
  std::atomic<bool> ended_{false};  // see end()
};

}  // namespace tonari::far
