#pragma once

#include "fft_memory.hpp"

#include <tonari/queue.hpp>
#include <tonari/window.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::splash_fft {

/// A window of tonari as SharedMemory.
class TonariMemory {
 public:
  class Pieces {
   public:
    Pieces(std::size_t count, std::size_t bytes, std::size_t stride) {
      for (std::size_t i = 0; i < count; ++i) regions_.push_back({i * stride, bytes});
    }
    [[nodiscard]] std::span<const Region> regions() const noexcept { return regions_; }

   private:
    std::vector<Region> regions_;
  };
  using Batch = std::vector<Descriptor>;

  TonariMemory(Job& job, std::size_t bytes) : window_(job, bytes), queue_(window_) {}

  [[nodiscard]] std::span<std::byte> local() const noexcept { return window_.local(); }

  void push(int rank, std::size_t offset, std::span<const std::byte> from) {
    check(window_.push(window_.at(JobRank{rank}, offset), from));
  }
  void push_pieces(int rank, std::size_t offset, std::span<const std::byte> from, const Pieces& pieces) {
    check(window_.push_regions(window_.at(JobRank{rank}, offset), from, pieces.regions()));
  }
  void pull(std::span<std::byte> to, int rank, std::size_t offset) {
    check(window_.pull(to, window_.at(JobRank{rank}, offset)));
  }

  [[nodiscard]] Batch batch(const std::vector<Push>& pushes) const {
    Batch batch;
    batch.reserve(pushes.size());
    for (const auto& push : pushes)
      batch.push_back(Descriptor::push(window_.at(JobRank{push.rank}, push.offset), push.from));
    return batch;
  }
  void post(Batch& batch) { check(queue_.post(batch)); }

  void settle() { check(queue_.wait_all()); }  // operations that were not posted were blocking
  void barrier() { check(window_.barrier()); }

 private:
  static void check(Status status) {
    if (status != Status::ok) [[unlikely]]
      throw std::runtime_error(std::string(explain(status)));
  }

  Window window_;
  Queue queue_;
};

static_assert(SharedMemory<TonariMemory>);

}  // namespace tonari::bench::splash_fft
