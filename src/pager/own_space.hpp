#pragma once

#include "base/mapping.hpp"
#include "pager/space.hpp"

#include <cstddef>
#include <mutex>

namespace tonari::pager {

/// The address space of this process.
///
/// A forked child has none of it: to touch a region there is a segmentation fault, since nobody would answer for the
/// pages that are absent, and the kernel would give zeros for them.
///
/// Owns:    its buffers, which take memory as far as they have pages.
/// Costs:   a system call for each operation; take_out() two.
class OwnSpace final : public Space {
 public:
  /// Throws SetupError.
  explicit OwnSpace(std::size_t buffers, Userfaultfd::Options options = {});

  [[nodiscard]] std::size_t buffers() const noexcept override { return count_; }
  void prepare(Address start, std::size_t bytes) override;
  void drop(Address start, std::size_t bytes) noexcept override;
  PageSet take_out(Address block, const PageSet& pages, Buffer buffer) noexcept override;
  PageSet move_in(Address block, const PageSet& pages, Buffer buffer) noexcept override;
  bool stock(Buffer buffer) noexcept override;
  void empty(Buffer buffer) noexcept override;
  std::byte* look(Buffer buffer, std::size_t place, std::size_t bytes) noexcept override;
  void put(Buffer /*buffer*/, std::size_t /*place*/, std::size_t /*bytes*/) noexcept override {}

 private:
  [[nodiscard]] std::byte* start_of(Buffer buffer) const noexcept;
  [[nodiscard]] Address address_of(Buffer buffer) const noexcept;
  PageSet fill_holes(Address block, Buffer buffer, const PageSet& missing) noexcept;
  static PageSet present(Address block) noexcept;

  // The kernel moves pages only to where it watches for faults. Nobody answers those in buffers: a read of an absent
  // page there is our bug, and a signal.
  Userfaultfd watch_{{.touch = Userfaultfd::Touch::signals}};
  std::size_t count_;
  Mapping memory_;
  std::byte* start_;
  // A watched range never gets a huge page from the kernel; this block is not watched, gets one, and passes it on.
  std::mutex nursery_mutex_;
  Mapping nursery_memory_;
  std::byte* nursery_;
};

}  // namespace tonari::pager
