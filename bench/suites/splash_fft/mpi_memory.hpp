#pragma once

#include "fft_memory.hpp"
#include "harness/buffers.hpp"

#include <mpi.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace tonari::bench::splash_fft {

/// A window of an MPI as SharedMemory, in one passive epoch. Each part begins at a cache line; the parts of the window
/// itself begin anywhere (in Open MPI 8 bytes after a line).
class MpiMemory {
 public:
  class Pieces {
   public:
    Pieces(std::size_t number, std::size_t bytes, std::size_t stride) {
      MPI_Type_create_hvector(count(number), count(bytes), static_cast<MPI_Aint>(stride), MPI_BYTE, &type_);
      MPI_Type_commit(&type_);
    }
    Pieces(Pieces&&) = delete;
    ~Pieces() { MPI_Type_free(&type_); }
    [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

   private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
  };
  struct Batch {
    std::vector<Push> pushes;
    std::vector<MPI_Request> requests;
  };

  explicit MpiMemory(std::size_t bytes) : bytes_(bytes) {
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes + line_bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &start_, &window_);
    const auto skipped = static_cast<MPI_Aint>(-reinterpret_cast<std::uintptr_t>(start_) % line_bytes);
    start_ += skipped;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    skipped_.resize(static_cast<std::size_t>(ranks));
    MPI_Allgather(&skipped, 1, MPI_AINT, skipped_.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  MpiMemory(MpiMemory&&) = delete;
  ~MpiMemory() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  [[nodiscard]] std::span<std::byte> local() const noexcept { return {start_, bytes_}; }

  void push(int rank, std::size_t offset, std::span<const std::byte> from) {
    const int number = count(from.size());
    MPI_Put(from.data(), number, MPI_BYTE, rank, place(rank, offset), number, MPI_BYTE, window_);
  }
  void push_pieces(int rank, std::size_t offset, std::span<const std::byte> from, const Pieces& pieces) {
    MPI_Put(from.data(), 1, pieces.type(), rank, place(rank, offset), 1, pieces.type(), window_);
  }
  void pull(std::span<std::byte> to, int rank, std::size_t offset) {
    const int number = count(to.size());
    MPI_Get(to.data(), number, MPI_BYTE, rank, place(rank, offset), number, MPI_BYTE, window_);
  }

  [[nodiscard]] Batch batch(const std::vector<Push>& pushes) const {
    return {pushes, std::vector<MPI_Request>(pushes.size())};
  }
  /// One request per operation, the closest to a descriptor in MPI.
  void post(Batch& batch) {
    for (std::size_t i = 0; i < batch.pushes.size(); ++i) {
      const auto& [rank, offset, from] = batch.pushes[i];
      const int number = count(from.size());
      MPI_Rput(from.data(), number, MPI_BYTE, rank, place(rank, offset), number, MPI_BYTE, window_, &batch.requests[i]);
    }
    MPI_Waitall(count(batch.requests.size()), batch.requests.data(), MPI_STATUSES_IGNORE);
  }

  void settle() { MPI_Win_flush_all(window_); }
  void barrier() {
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window_);
  }

 private:
  static int count(std::size_t number) {
    if (number > INT_MAX) throw std::invalid_argument("this MPI counts with int: no copy of 2 GiB or more");
    return static_cast<int>(number);
  }

  [[nodiscard]] MPI_Aint place(int rank, std::size_t offset) const noexcept {
    return skipped_[static_cast<std::size_t>(rank)] + static_cast<MPI_Aint>(offset);
  }

  std::byte* start_ = nullptr;
  std::size_t bytes_;
  std::vector<MPI_Aint> skipped_;  // by rank: bytes of its part before the first line
  MPI_Win window_ = MPI_WIN_NULL;
};

static_assert(SharedMemory<MpiMemory>);

}  // namespace tonari::bench::splash_fft
