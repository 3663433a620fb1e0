#pragma once

#include "pager/source.hpp"

#include <cstdint>

namespace tonari::far {

/// The places of a source from `first` on, for a region that has not the first places.
///
/// Owns:    nothing; the source outlives it.
/// Threads: as pager::Source.
class SourcePart final : public pager::Source {
 public:
  SourcePart(Source& whole, std::uint64_t first) noexcept : whole_(whole), first_(first) {}

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override {
    return whole_.fetch(first_ + place, into);
  }
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override {
    return whole_.store(first_ + place, from);
  }
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return whole_.discard(first_ + place, bytes);
  }
  std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return whole_.look(first_ + place, bytes);
  }
  std::span<std::byte> room(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return whole_.room(first_ + place, bytes);
  }

 private:
  Source& whole_;
  std::uint64_t first_;
};

}  // namespace tonari::far
