#include "far/packed_store.hpp"

#include "far/blocks.hpp"

#include <lz4.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tonari::far {

using pager::block_bytes;
using pager::block_pages;
using pager::page_bytes;

namespace {

// A larger result would save no slot worth the time that it takes to decompress it.
constexpr int packed_bytes_max = 3584;
// Most bytes of adjacent pieces that are moved to or from a server in one access.
constexpr std::size_t carried_bytes_max = 32 << 10;

std::size_t pack(const std::byte* page, std::byte* into) noexcept {
  const int bytes = ::LZ4_compress_default(reinterpret_cast<const char*>(page), reinterpret_cast<char*>(into),
                                           page_bytes, packed_bytes_max);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
  std::copy_n(page, page_bytes, into);
  return page_bytes;
}

// Bytes that are not a valid block give zeros. A page of zeros is never stored, so the pager finds the error.
void unpack(Piece piece, const std::byte* from, std::byte* page) noexcept {
  if (!piece.is_packed()) {
    std::copy_n(from, page_bytes, page);
  } else if (::LZ4_decompress_safe(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(page),
                                   static_cast<int>(piece.bytes()), page_bytes) != page_bytes) {
    std::fill_n(page, page_bytes, std::byte{0});
  }
}

// Returns the first piece and the pieces adjacent to it that can be moved in the same access.
std::span<const Piece> row_at_start(std::span<const Piece> pieces) noexcept {
  std::size_t bytes = pieces.front().slot_bytes();
  std::size_t count = 1;
  for (; count < pieces.size() && pieces[count].follows(pieces[count - 1]); ++count) {
    bytes += pieces[count].slot_bytes();
    if (bytes > carried_bytes_max) break;
  }
  return pieces.first(count);
}

/// Collects adjacent pieces on their way to the store.
class Cart {
 public:
  explicit Cart(Store& store) noexcept : store_(store) {}

  /// Returns the place to make the next piece at. It has room for a page.
  [[nodiscard]] std::byte* end() noexcept { return bytes_.data() + loaded_; }

  /// Adds the piece that was made at end().
  Status load(Piece piece) noexcept {
    Status status = Status::ok;
    if (loaded_ != 0 && !piece.follows(last_)) {
      const std::byte* const made = end();
      status = unload();
      std::copy_n(made, piece.bytes(), bytes_.data());
    }
    if (loaded_ == 0) place_ = piece.place();
    std::fill_n(end() + piece.bytes(), piece.slot_bytes() - piece.bytes(), std::byte{0});  // no stale bytes are stored
    loaded_ += piece.slot_bytes();
    last_ = piece;
    const bool is_full = bytes_.size() - loaded_ < page_bytes;
    return status == Status::ok && is_full ? unload() : status;
  }
  Status unload() noexcept {
    const std::size_t bytes = std::exchange(loaded_, 0);
    return bytes == 0 ? Status::ok : store_.write(place_, std::span(bytes_).first(bytes));
  }

 private:
  Store& store_;
  std::uint64_t place_ = 0;  // of the first piece
  Piece last_;
  std::size_t loaded_ = 0;
  std::array<std::byte, carried_bytes_max> bytes_;
};

}  // namespace

PackedStore::PackedStore(Store& store, std::uint64_t bytes)
    : store_(store),
      slots_(store),
      piece_memory_(Mapping::of_sparse_zeros(bytes / page_bytes * sizeof(Piece), "far memory's pieces")),
      pieces_(reinterpret_cast<Piece*>(piece_memory_.bytes().data())) {}

std::uint64_t PackedStore::kept_bytes() const noexcept {
  return kept_pages_.load(std::memory_order_relaxed) * page_bytes;
}

Status PackedStore::store(std::uint64_t place, std::span<const std::byte> from) noexcept {
  return for_each_block(place, from.size(), [&](std::uint64_t at, std::uint64_t bytes) {
    return replace(pieces_at(at, bytes), from.subspan(at - place, bytes));
  });
}

// Replaces all of the pieces or none. They are pages of one block.
Status PackedStore::replace(std::span<Piece> pieces, std::span<const std::byte> from) noexcept {
  std::array<Piece, block_pages> room{};
  const std::span<Piece> others = std::span(room).first(pieces.size());
  const Status status = write(others, from);
  if (status == Status::ok) std::ranges::swap_ranges(others, pieces);
  forget(others);
  return status;
}

Status PackedStore::write(std::span<Piece> fresh, std::span<const std::byte> from) noexcept {
  Cart cart(store_);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const std::size_t bytes = pack(from.data() + i * page_bytes, cart.end());
    const std::size_t slot_bytes = Piece(0, bytes).slot_bytes();
    const auto place = slots_.take(slot_bytes);
    if (!place) return Status::no_memory;
    fresh[i] = Piece(*place, bytes);
    kept_pages_.fetch_add(1, std::memory_order_relaxed);
    packed_bytes_out_.fetch_add(slot_bytes, std::memory_order_relaxed);
    if (const Status status = cart.load(fresh[i]); status != Status::ok) return status;
  }
  return cart.unload();
}

Status PackedStore::fetch(std::uint64_t place, std::span<std::byte> into) noexcept {
  const std::span<const Piece> pieces = pieces_at(place, into.size());
  for (std::size_t i = 0; i < pieces.size();) {
    const std::span<const Piece> row = row_at_start(pieces.subspan(i));
    const Status status = read(row, into.data() + i * page_bytes);
    if (status != Status::ok) return status;
    i += row.size();
  }
  return Status::ok;
}

Status PackedStore::read(std::span<const Piece> row, std::byte* into) noexcept {
  const Piece first = row.front();
  if (!first.exists()) {
    std::fill_n(into, page_bytes, std::byte{0});
    return Status::ok;
  }
  std::array<std::byte, carried_bytes_max> copy;
  const std::uint64_t bytes = row.back().place() + row.back().slot_bytes() - first.place();
  std::span<const std::byte> from = store_.look(first.place(), bytes);
  if (from.empty()) {
    const Status status = store_.fetch(first.place(), std::span(copy).first(bytes));
    if (status != Status::ok) return status;
    from = copy;
  }
  for (const Piece each : row) {
    unpack(each, from.data() + (each.place() - first.place()), into);
    into += page_bytes;
  }
  return Status::ok;
}

Status PackedStore::discard(std::uint64_t place, std::uint64_t bytes) noexcept {
  forget(pieces_at(place, bytes));
  return Status::ok;
}

void PackedStore::forget(std::span<Piece> pieces) noexcept {
  for (Piece& each : pieces) {
    if (!each.exists()) continue;
    slots_.give_back(std::exchange(each, {}).place());
    kept_pages_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace tonari::far
