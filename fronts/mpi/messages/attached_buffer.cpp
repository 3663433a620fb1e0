#include "mpi/messages/attached_buffer.hpp"

#include "message/requests.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/requests/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace tonari::mpi {

using message::Requests;

/// In front of each message's data.
struct alignas(16) AttachedBuffer::Record {
  Record* next;
  Record* previous;
  std::size_t bytes;  // with the record
  std::uint64_t number;
  tonari::Request request{};
  std::shared_ptr<message::Context> context{};  // the communicator may be freed meanwhile
  bool is_awaited = false;                      // a flush waits for it, without the lock

  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this) + bytes; }
};

AttachedBuffer::AttachedBuffer(void* memory, std::size_t bytes, bool is_automatic) noexcept
    : memory_(memory), bytes_(bytes), is_automatic_(is_automatic) {
  // The program has counted MPI_BSEND_OVERHEAD for each message. It also pays for alignment.
  static_assert(sizeof(Record) + 2 * alignof(Record) <= MPI_BSEND_OVERHEAD);
}

// The functions below are called under the lock, down to remove_complete().

AttachedBuffer::Record* AttachedBuffer::make_record(void* at, std::size_t bytes, Record* before) noexcept {
  Record* const next = before != nullptr ? before->next : first_;
  auto* const record = new (at) Record{next, before, bytes, ++numbers_};
  (before != nullptr ? before->next : first_) = record;
  if (next != nullptr) next->previous = record;
  last_placed_ = record;
  ++records_;
  return record;
}

// Places a record between `before`, or the beginning, and the next record. Returns null if there is no room.
AttachedBuffer::Record* AttachedBuffer::place_behind(Record* before, std::size_t bytes) noexcept {
  Record* const next = before != nullptr ? before->next : first_;
  void* at = before != nullptr ? before->end() : memory_;
  std::size_t room = static_cast<std::size_t>((next != nullptr ? reinterpret_cast<std::byte*>(next) : end()) -
                                              static_cast<std::byte*>(at));
  return std::align(alignof(Record), bytes, at, room) != nullptr ? make_record(at, bytes, before) : nullptr;
}

// Returns null if there is no room.
AttachedBuffer::Record* AttachedBuffer::place(std::size_t bytes) {
  if (records_ != 0) make_progress();  // the last news of a message that was received may have arrived
  if (records_ < few || records_ >= looks_at_) {
    remove_complete();
    looks_at_ = 2 * records_ + few;
  }
  if (is_automatic_) return make_record(::operator new (bytes, std::align_val_t{alignof(Record)}), bytes, nullptr);
  if (Record* const record = place_behind(last_placed_, bytes)) return record;
  remove_complete();
  Record* record = place_behind(nullptr, bytes);
  for (Record* each = first_; record == nullptr && each != nullptr; each = each->next) {
    record = place_behind(each, bytes);
  }
  return record;
}

void AttachedBuffer::remove(Record& record) noexcept {
  (record.previous != nullptr ? record.previous->next : first_) = record.next;
  if (record.next != nullptr) record.next->previous = record.previous;
  if (last_placed_ == &record) last_placed_ = record.previous;
  --records_;
  record.~Record();
  if (is_automatic_) ::operator delete (&record, std::align_val_t{alignof(Record)});
}

void AttachedBuffer::remove_complete() noexcept {
  for (Record* each = first_; each != nullptr;) {
    Record* const next = each->next;
    if (!each->is_awaited && Requests::advance(each->request)) remove(*each);
    each = next;
  }
}

void AttachedBuffer::send(Comm& comm, const Buffer& data, int dest, int tag) {
  const std::lock_guard guard(mutex_);
  const std::size_t bytes = sizeof(Record) + data.bytes();
  Record* const record = place(bytes);
  if (record == nullptr) {
    throw Failure(MPI_ERR_BUFFER,
                  fmt::format("the attached buffer of {} bytes has no room for a message of {} bytes beside {} others: "
                              "attach a longer one, with MPI_BSEND_OVERHEAD bytes for each message",
                              bytes_, data.bytes(), records_));
  }
  try {
    data.pack(record->data());
    record->context = comm.context;
    record->request = start_send(comm, std::span<const std::byte>(record->data(), data.bytes()),
                                 job_rank_of(comm, dest), tag, comm.context->id(), SendMode::standard);
  } catch (...) {
    remove(*record);
    throw;
  }
  if (record->request.complete()) remove(*record);
}

std::uint64_t AttachedBuffer::last_number() noexcept {
  const std::lock_guard guard(mutex_);
  return numbers_;
}

bool AttachedBuffer::have_left(std::uint64_t number) noexcept {
  const std::lock_guard guard(mutex_);
  remove_complete();
  for (const Record* each = first_; each != nullptr; each = each->next) {
    if (each->number <= number) return false;
  }
  return true;
}

void AttachedBuffer::flush_until(std::uint64_t number) noexcept {
  std::unique_lock guard(mutex_);
  const auto find = [&](bool is_awaited) {
    Record* found = first_;
    while (found != nullptr && (found->number > number || found->is_awaited != is_awaited)) found = found->next;
    return found;
  };
  while (Record* const record = find(false)) {
    record->is_awaited = true;
    guard.unlock();
    (void)record->request.wait();
    guard.lock();
    remove(*record);
    removed_.notify_all();
  }
  removed_.wait(guard, [&] { return find(true) == nullptr; });  // other threads wait for these
}

}  // namespace tonari::mpi
