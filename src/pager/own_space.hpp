#pragma once

#include "base/mapping.hpp"
#include "pager/placing.hpp"
#include "pager/space.hpp"

#include <cstddef>
#include <mutex>
#include <span>

namespace tonari::pager {

/// The address space of this process.
///
/// A forked child does not inherit it, and a touch of a region there is a segmentation fault. Otherwise nobody would
/// serve the child's faults, and the kernel would give zeros.
///
/// Owns:    its buffers. They take memory for the pages that they have.
/// Costs:   a system call for each operation; two for take_out().
class OwnSpace : public Space {
 public:
  /// Throws SetupError.
  explicit OwnSpace(std::size_t buffers, Userfaultfd::Options options = {});

  [[nodiscard]] std::size_t buffers() const noexcept override { return count_; }
  void prepare(Address start, std::size_t bytes) override;
  void drop(Address start, std::size_t bytes) noexcept override;
  PageSet take_out(Address block, const PageSet& pages, Buffer buffer, Sums sums, SharedPages shared) noexcept override;
  PageSet move_in(Address block, const PageSet& pages, Buffer buffer) noexcept override;
  bool prefault(Buffer buffer) noexcept override;
  void empty(Buffer buffer) noexcept override;
  std::byte* view(Buffer buffer) noexcept override;
  std::span<std::byte, block_bytes> scratch(std::size_t worker) noexcept override;
  bool fill(Buffer buffer, const std::byte* from, const PageSet& pages, Sums sums) noexcept override;
  bool read(Buffer buffer, const PageSet& pages, std::size_t first, std::byte* to) noexcept override;
  [[nodiscard]] bool drops_in_place() const noexcept override { return faults().protects(); }
  PageSet protect(Address block, const PageSet& pages, Sums sums) noexcept override;
  bool read_in_place(Address block, const PageSet& pages, std::size_t first, std::byte* to) noexcept override;
  PageSet drop_protected(Address block, const PageSet& pages, const PageSet& going) noexcept override;

 private:
  struct Calls {
    Userfaultfd* watch;
    Userfaultfd* faults;
    [[nodiscard]] Progress move_out(Address to, Address from, std::size_t bytes) const noexcept;
    [[nodiscard]] Progress move_in(Address to, Address from, std::size_t bytes) const noexcept;
    void wake(Address start, std::size_t bytes) const noexcept;
    void zero(Address to, std::size_t bytes) const noexcept;
    static bool drop(Address start, std::size_t bytes) noexcept;
    [[nodiscard]] Answer protect(Address start, std::size_t bytes, bool writes_wait) const noexcept;
    static bool populate(Address start, std::size_t bytes) noexcept;
    static bool copy_shared(Address /*start*/, std::size_t /*bytes*/) noexcept { return false; }  // children share none
    static bool look_up(Address start, std::size_t bytes, unsigned char* pages) noexcept;
  };

  [[nodiscard]] Address address_of(Buffer buffer) const noexcept;

  // The kernel moves pages only to a range that is registered for faults. Nobody serves faults in buffers: reading an
  // absent page there is a bug of the pager, and raises a signal.
  Userfaultfd watch_{{.touch = Userfaultfd::Touch::signals}};
  std::size_t count_;
  Mapping memory_;
  std::byte* start_;
  Mapping scratch_;
  // The kernel places no huge pages in a registered range. This block is not registered: it gets a huge page, which is
  // then moved to a buffer.
  std::mutex nursery_mutex_;
  Mapping nursery_memory_;
  Placing<Calls> placing_;
};

}  // namespace tonari::pager
