#pragma once

#include "mpi/messages/buffer.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

namespace tonari::mpi {

/// Memory into which buffered sends copy their data: a program's, or as much as they need of the allocator's.
///
///   | record, data | free | record, data | record, data | free      |    records in the order of their addresses
///
/// Life:    destroying it waits until all messages have left.
/// Threads: any.
/// Costs:   a send places its data behind the data of the last one, and looks for other room only if there is none. It
/// looks
///          which sends are complete if there are few, otherwise once each time that their number has doubled.
class AttachedBuffer {
 public:
  /// Uses memory of the allocator.
  AttachedBuffer() noexcept : AttachedBuffer(nullptr, 0, true) {}
  /// The memory stays the program's.
  AttachedBuffer(void* memory, std::size_t bytes) noexcept : AttachedBuffer(memory, bytes, false) {}
  AttachedBuffer(AttachedBuffer&&) = delete;
  ~AttachedBuffer() { flush(); }

  /// Copies the data and starts their send. Throws Failure if there is no room.
  void send(Comm& comm, const Buffer& data, int dest, int tag);
  /// Waits until all messages that are in the buffer have left.
  void flush() noexcept { flush_until(last_number()); }
  /// The same for those up to a number.
  void flush_until(std::uint64_t number) noexcept;
  /// Number of the last message; they count from 1.
  [[nodiscard]] std::uint64_t last_number() noexcept;
  /// Looks whether all messages up to a number have left.
  [[nodiscard]] bool have_left(std::uint64_t number) noexcept;

  [[nodiscard]] bool is_automatic() const noexcept { return is_automatic_; }
  [[nodiscard]] void* memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Record;

  AttachedBuffer(void* memory, std::size_t bytes, bool is_automatic) noexcept;
  Record* place(std::size_t bytes);
  Record* place_behind(Record* before, std::size_t bytes) noexcept;
  Record* make_record(void* at, std::size_t bytes, Record* before) noexcept;
  void remove(Record& record) noexcept;
  void remove_complete() noexcept;
  [[nodiscard]] std::byte* end() const noexcept { return static_cast<std::byte*>(memory_) + bytes_; }

  void* const memory_;
  const std::size_t bytes_;
  const bool is_automatic_;
  std::mutex mutex_;  // protects the rest
  std::condition_variable removed_;
  Record* first_ = nullptr;  // lowest address
  Record* last_placed_ = nullptr;
  std::size_t records_ = 0;
  static constexpr std::size_t few = 16;
  std::size_t looks_at_ = few;  // number of records at which it looks for completed ones
  std::uint64_t numbers_ = 0;
};

/// Sends from the buffer that is attached to the communicator; if it has none, to the session that it is derived from;
/// if that has none, to the process. Throws Failure if there is no buffer, or no room.
void send_buffered(Comm& comm, const Buffer& data, int dest, int tag);
/// Detaches the process's buffer, once its messages have left. For the end of the job.
void drop_process_buffer();
/// The same for the end of a session.
void drop_buffer(SessionBuffer& buffer);

}  // namespace tonari::mpi
