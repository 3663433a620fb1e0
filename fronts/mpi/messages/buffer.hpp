#pragma once

#include "mpi/comm.hpp"
#include "mpi/datatype.hpp"
#include "mpi/failure.hpp"
#include "mpi/object.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <span>

// The only files that know where the data of a message are in a program's memory.
namespace tonari::mpi {

[[noreturn, gnu::cold]] void fail_address(const void* address);
[[noreturn, gnu::cold]] void fail_length(MPI_Count count, std::size_t element_bytes);

/// The data of a message: `count` elements of a type at an address of the program, which owns the memory.
class Buffer {
 public:
  /// Throws Failure if the data are too long, or plain and without an address.
  Buffer(const void* address, MPI_Count count, const Datatype& type) : address_(address), count_(count), type_(&type) {
    if (__builtin_mul_overflow(static_cast<std::size_t>(count), type.size, &bytes_)) [[unlikely]]
      fail_length(count, type.size);
    if (number_of(address) <= last_special_address && type.is_plain && bytes_ != 0) [[unlikely]]
      fail_address(address);
  }

  /// Length of the data, without gaps.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The memory of plain data; for others only the length, without an address.
  [[nodiscard]] std::span<const std::byte> place() const noexcept {
    return {type_->is_plain ? static_cast<const std::byte*>(address_) : nullptr, bytes_};
  }
  /// True if the data are the bytes of one span.
  [[nodiscard]] bool is_plain() const noexcept { return type_->is_plain; }
  [[nodiscard]] std::span<const std::byte> read() const noexcept {
    return {static_cast<const std::byte*>(address_), bytes_};
  }
  [[nodiscard]] std::span<std::byte> write() const noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(address_)), bytes_};
  }
  /// The data of any type.
  [[nodiscard]] message::LayoutCursor cursor() const;
  /// Copies all data to `to`, without gaps.
  void pack(std::byte* to) const;
  /// Copies data without gaps from `from` into the buffer, at most all of it.
  void unpack(std::span<const std::byte> from) const;
  /// The part of `count` elements from element `first` on.
  [[nodiscard]] Buffer part(MPI_Count first, MPI_Count count) const;

 private:
  static constexpr std::uintptr_t last_special_address = 2;  // MPI_BOTTOM, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC

  const void* address_;
  MPI_Count count_;
  std::size_t bytes_ = 0;
  const Datatype* type_;
};

/// Starts a send to `dest`, which may be MPI_PROC_NULL. A message that left at once is complete.
tonari::Request start_send(Comm& comm, const Buffer& data, int dest, int tag, SendMode mode);
/// Starts a receive. `source` may be MPI_PROC_NULL and MPI_ANY_SOURCE.
tonari::Request start_receive(Comm& comm, const Buffer& data, int source, int tag);
/// A receive from MPI_PROC_NULL.
tonari::Request receive_from_nobody() noexcept;
/// Starts the receive of a message that `probe`, a matched probe of the runtime, has taken.
tonari::Request start_receive_matched(message::Operation& probe, const Buffer& data);

/// The same for plain data and a rank of the job, with a context id that only the front uses: for messages that must
/// not meet messages of the program.
tonari::Request start_send(Comm& comm, std::span<const std::byte> bytes, int job_rank, int tag,
                           std::uint32_t context_id, SendMode mode);
tonari::Request start_receive(Comm& comm, std::span<std::byte> bytes, int job_rank, int tag, std::uint32_t context_id);

}  // namespace tonari::mpi
