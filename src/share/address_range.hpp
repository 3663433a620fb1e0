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

/// The addresses of shared memory: a range that is reserved in all ranks of the job, so that a pointer into it means
/// the same in every rank. Ranks that are threads of one process have different ranges.
///
/// Owns:    the addresses, mapped without access rights where there is no array.
/// Threads: any.
class AddressRange {
 public:
  /// Collective. Throws SetupError, in all ranks, if no range is free in all of them.
  AddressRange(job::Session& session, Communicator& ranks);
  AddressRange(AddressRange&&) = delete;
  ~AddressRange();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {start_, bytes_}; }
  /// Throws SetupError if `bytes` would not fit even into an empty range.
  void expect_room_for(std::uint64_t bytes) const;
  /// Takes whole pages. Returns the same address in all ranks, if all take and give back in the same order. Throws
  /// SetupError.
  [[nodiscard]] std::byte* take(std::uint64_t bytes);
  /// For kernels that report no faults of system calls: has the preload library wrap libc's calls, or logs a warning.
  void tell_unreached(const job::Session& session);
  /// Gives a range back, and unmaps its memory.
  void give_back(std::byte* start) noexcept;

 private:
  [[nodiscard]] std::byte* agree(job::Session& session, Communicator& ranks) const;
  [[noreturn]] void refuse(std::uint64_t bytes) const;

  std::uint64_t bytes_;
  std::byte* start_ = nullptr;
  TellUnreached* tell_ = nullptr;                // of the preload library, if it was told
  std::mutex mutex_;                             // protects taken_
  std::map<std::byte*, std::uint64_t> taken_{};  // start of each range in use, and its bytes
};

}  // namespace tonari::share
