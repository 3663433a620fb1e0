#pragma once

#include "job/session.hpp"
#include "share/preload/unreached.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace tonari::share {

/// Addresses that this rank keeps free, the same in all ranks of the job: what is shared lies there, so that a pointer
/// to it means the same everywhere. Ranks that are threads of one process have different ones.
///
/// Owns:    the addresses, mapped without any right until there is something.
/// Threads: any.
class AddressRange {
 public:
  /// Collective. Throws SetupError, in all ranks, when there are no such addresses.
  AddressRange(job::Session& session, Communicator& ranks);
  AddressRange(AddressRange&&) = delete;
  ~AddressRange();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {start_, bytes_}; }
  /// Throws SetupError when so many could not be had even if all were free.
  void expect_room_for(std::uint64_t bytes) const;
  /// Whole pages. Answers the same in all ranks, if all have taken and given back in the same order. Throws SetupError.
  [[nodiscard]] std::byte* take(std::uint64_t bytes);
  /// Here the kernel tells no faults of system calls: lets the calls of libc be wrapped, or says what will fail.
  void tell_unreached(const job::Session& session);
  /// What is mapped there is no longer.
  void give_back(std::byte* start) noexcept;

 private:
  [[nodiscard]] std::byte* agree(job::Session& session, Communicator& ranks) const;
  [[noreturn]] void refuse(std::uint64_t bytes) const;

  std::uint64_t bytes_;
  std::byte* start_ = nullptr;
  TellUnreached* tell_ = nullptr;                // the preload's, if it has been told
  std::mutex mutex_;                             // of the next
  std::map<std::byte*, std::uint64_t> taken_{};  // by where it begins: bytes of it
};

}  // namespace tonari::share
