#pragma once

#include "harness/one_sided_wire.hpp"
#include "wires/mpi.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

namespace tonari::bench {

/// An MPI as a Wire with windows, in passive mode: within MPI_Win_lock_all throughout, except for windows with locks.
/// The weakest sufficient call completes each operation.
class MpiOneSidedWire : public MpiWire {
 public:
  using MpiWire::MpiWire;

  class Window {
   public:
    enum class Epoch : bool { one, between_locks };

    Window(MPI_Win window, std::span<std::byte> local, Epoch epoch) : window_(window), local_(local), epoch_(epoch) {
      if (epoch == Epoch::one) MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    }
    Window(Window&&) = delete;
    ~Window() {
      if (std::uncaught_exceptions() != 0) return;  // freeing is collective, and the job is about to be aborted
      if (epoch_ == Epoch::one) MPI_Win_unlock_all(window_);
      MPI_Win_free(&window_);
    }

    std::span<std::byte> local() {
      if (epoch_ == Epoch::one) MPI_Win_sync(window_);
      return local_;
    }
    void push(std::span<const std::byte> from, int rank, std::size_t offset) {
      const int bytes = count(from.size());
      MPI_Put(from.data(), bytes, MPI_BYTE, rank, at(offset), bytes, MPI_BYTE, window_);
    }
    void flush(int rank) { MPI_Win_flush(rank, window_); }
    void flush() { MPI_Win_flush_all(window_); }
    void pull(std::span<std::byte> to, int rank, std::size_t offset) {
      const int bytes = count(to.size());
      MPI_Get(to.data(), bytes, MPI_BYTE, rank, at(offset), bytes, MPI_BYTE, window_);
    }
    void finish_pulls(int rank) { MPI_Win_flush_local(rank, window_); }
    /// MPI has no multicast: puts to all other ranks.
    void multicast(std::span<const std::byte> from, std::size_t offset) {
      int size = 0;
      int self = 0;
      MPI_Comm_size(MPI_COMM_WORLD, &size);
      MPI_Comm_rank(MPI_COMM_WORLD, &self);
      for (int rank = 0; rank < size; ++rank) {
        if (rank != self) push(from, rank, offset);
      }
    }
    std::uint64_t fetch_add(std::uint64_t value, int rank, std::size_t offset) {
      std::uint64_t before = 0;
      MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, rank, at(offset), MPI_SUM, window_);
      MPI_Win_flush(rank, window_);
      return before;
    }
    std::uint64_t compare_and_swap(std::uint64_t expected, std::uint64_t desired, int rank, std::size_t offset) {
      std::uint64_t before = 0;
      MPI_Compare_and_swap(&desired, &expected, &before, MPI_UINT64_T, rank, at(offset), window_);
      MPI_Win_flush(rank, window_);
      return before;
    }
    /// MPI_Win_lock may defer acquiring the lock until the first access. A flush may not.
    void lock(int rank) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window_);
      MPI_Win_flush(rank, window_);
    }
    void unlock(int rank) { MPI_Win_unlock(rank, window_); }

   private:
    static MPI_Aint at(std::size_t offset) noexcept { return static_cast<MPI_Aint>(offset); }

    MPI_Win window_;
    std::span<std::byte> local_;
    Epoch epoch_;
  };

  /// Memory attached to a dynamic window.
  class Alone {
   public:
    Alone() { MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window_); }
    Alone(Alone&&) = delete;
    ~Alone() {
      if (std::uncaught_exceptions() == 0) MPI_Win_free(&window_);
    }
    void expose(std::span<std::byte> memory) {
      MPI_Win_attach(window_, memory.data(), static_cast<MPI_Aint>(memory.size()));
      start_ = memory.data();
    }
    void withdraw() { MPI_Win_detach(window_, start_); }

   private:
    MPI_Win window_;
    void* start_ = nullptr;
  };

  Window allocate(std::size_t bytes) { return make(bytes, Window::Epoch::one); }
  Window allocate_with_locks(std::size_t bytes) { return make(bytes, Window::Epoch::between_locks); }
  Window expose(std::span<std::byte> memory) {
    MPI_Win window;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    return {window, memory, Window::Epoch::one};
  }
  Alone prepare_alone() { return {}; }

 private:
  static Window make(std::size_t bytes, Window::Epoch epoch) {
    void* start = nullptr;
    MPI_Win window;
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &start, &window);
    return {window, {static_cast<std::byte*>(start), bytes}, epoch};
  }
};

static_assert(AtomicWire<MpiOneSidedWire> && LockWire<MpiOneSidedWire>);
static_assert(MulticastWire<MpiOneSidedWire> && AloneWire<MpiOneSidedWire>);

}  // namespace tonari::bench
