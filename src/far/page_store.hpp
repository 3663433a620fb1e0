#pragma once

#include "far/control.hpp"
#include "far/file_store.hpp"
#include "far/packed_store.hpp"
#include "far/servers.hpp"
#include "far/store.hpp"
#include "far/tiered_store.hpp"
#include "pager/source.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace tonari::far {

/// Keeps the pages of one process, or the old pages that its forked children need, as the order says: at servers,
/// compressed or not, in a file, or both.
///
/// Owns:    a store for each of these, and what it has taken from the servers, which outlive it.
/// Threads: as pager::Source; lost_bytes() any.
class PageStore final : public pager::Source {
 public:
  /// Throws SetupError.
  PageStore(Servers& servers, const Order& order);
  /// Gives everything back to the servers.
  ~PageStore() override;
  PageStore(PageStore&&) = delete;

  /// Returns how many bytes of places there are: for the arena, and after them parts_bytes_max for other ranges.
  [[nodiscard]] static std::uint64_t places_bytes(const Order& order) noexcept {
    return order.arena_bytes + parts_bytes_max;
  }
  /// A place takes no memory before it is used.
  static constexpr std::uint64_t parts_bytes_max = 256ULL << 30;

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override { return source_->fetch(place, into); }
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override {
    return source_->store(place, from);
  }
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override { return source_->discard(place, bytes); }
  std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return source_->look(place, bytes);
  }
  std::span<std::byte> room(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return source_->room(place, bytes);
  }

  /// Returns the size of the chunks whose every server has died.
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept { return at_servers_ ? at_servers_->lost_bytes() : 0; }
  [[nodiscard]] bool has_servers() const noexcept { return at_servers_.has_value(); }

  // nullptr: the order asks for none.
  [[nodiscard]] const FileStore* file() const noexcept { return file_ ? &*file_ : nullptr; }
  [[nodiscard]] const PackedStore* packed() const noexcept { return packed_ ? &*packed_ : nullptr; }
  [[nodiscard]] const TieredStore* tiered() const noexcept { return tiered_ ? &*tiered_ : nullptr; }

 private:
  std::optional<FileStore> file_;
  std::optional<Store> at_servers_;
  std::optional<PackedStore> packed_;  // compressed pages in `at_servers_`
  std::optional<TieredStore> tiered_;  // moves cold pages from `packed_` to `file_`
  pager::Source* source_;              // the one of them that the pages go to
};

}  // namespace tonari::far
