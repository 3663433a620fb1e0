#include "message/layout_cursor.hpp"

#include "base/spare_memory.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace tonari::message {

namespace {

// The two directions of copying between a layout and contiguous memory.
struct Packing {
  using Pointer = std::byte*;
  static void copy(std::uintptr_t run, std::byte* packed, std::size_t bytes) noexcept {
    std::memcpy(packed, reinterpret_cast<const std::byte*>(run), bytes);
  }
};
struct Unpacking {
  using Pointer = const std::byte*;
  static void copy(std::uintptr_t run, const std::byte* packed, std::size_t bytes) noexcept {
    std::memcpy(reinterpret_cast<std::byte*>(run), packed, bytes);
  }
};

template <class Way>
class MoveSink {
 public:
  using Address = std::uintptr_t;
  using Pointer = typename Way::Pointer;
  explicit MoveSink(Pointer packed) noexcept : packed_(packed) {}

  void run(Address first, std::size_t bytes) noexcept {
    copy(first, packed_, bytes);
    packed_ += bytes;
  }
  void strided(Address first, std::ptrdiff_t stride, std::size_t count, std::size_t bytes) noexcept {
    columns(first, stride, packed_, bytes, count, bytes);
    packed_ += count * bytes;
  }
  void spread(Address origin, const std::ptrdiff_t* offsets, std::size_t count, std::size_t bytes) noexcept {
    with_length(bytes, [&](auto length) {
      Pointer packed = packed_;
      for (std::size_t i = 0; i < count; ++i, packed += length) {
        copy(origin + static_cast<Address>(offsets[i]), packed, length);
      }
    });
    packed_ += count * bytes;
  }
  // Copies a few repetitions at a time, run by run, so that each inner loop has one length and one distance.
  void lists(Address origin, std::ptrdiff_t stride, std::size_t count, const LayoutNode& node) noexcept {
    constexpr std::size_t bytes_at_a_time = 4096;
    const std::size_t at_a_time = std::max<std::size_t>(bytes_at_a_time / node.bytes, 1);
    while (count != 0) {
      const std::size_t some = std::min(count, at_a_time);
      some == 1 ? list(origin, node) : list_columns(origin, stride, some, node);
      packed_ += some * node.bytes;
      origin += static_cast<Address>(stride) * some;
      count -= some;
    }
  }

 private:
  template <std::size_t value>
  using Length = std::integral_constant<std::size_t, value>;

  // Calls `use` with the number of bytes, as a constant if it is a frequent one: then a copy is a few loads and stores.
  template <class Use>
  static void with_length(std::size_t bytes, Use&& use) noexcept {
    switch (bytes) {
      case 1: return use(Length<1>());
      case 2: return use(Length<2>());
      case 4: return use(Length<4>());
      case 8: return use(Length<8>());
      case 12: return use(Length<12>());
      case 16: return use(Length<16>());
      case 24: return use(Length<24>());
      case 32: return use(Length<32>());
      case 64: return use(Length<64>());
      default: return use(bytes);
    }
  }

  void list(Address origin, const LayoutNode& node) const noexcept {
    const LayoutNode::Run* run = node.runs();
    for (std::size_t i = 0; i < node.count; ++i, ++run) {
      copy(origin + static_cast<Address>(run->offset), packed_ + run->before, run[1].before - run->before);
    }
  }
  void list_columns(Address origin, std::ptrdiff_t stride, std::size_t count, const LayoutNode& node) const noexcept {
    const LayoutNode::Run* run = node.runs();
    for (std::size_t i = 0; i < node.count; ++i, ++run) {
      columns(origin + static_cast<Address>(run->offset), stride, packed_ + run->before, node.bytes, count,
              run[1].before - run->before);
    }
  }
  // Copies `count` runs of `bytes`, which are `stride` apart in the layout and `packed_stride` apart when packed.
  static void columns(Address first, std::ptrdiff_t stride, Pointer packed, std::size_t packed_stride,
                      std::size_t count, std::size_t bytes) noexcept {
    with_length(bytes, [=](auto length) {
      Pointer to = packed;
      Address each = first;
      for (std::size_t i = 0; i < count; ++i, each += static_cast<Address>(stride), to += packed_stride) {
        copy(each, to, length);
      }
    });
  }

  template <std::size_t bytes>
  static void copy(Address first, Pointer packed, Length<bytes>) noexcept {
    Way::copy(first, packed, bytes);
  }
  // Copies a short run as two halves of constant length that may overlap, without a function call.
  static void copy(Address first, Pointer packed, std::size_t bytes) noexcept {
    if (bytes > 64) return Way::copy(first, packed, bytes);
    if (bytes >= 32) return halves<32>(first, packed, bytes);
    if (bytes >= 16) return halves<16>(first, packed, bytes);
    if (bytes >= 8) return halves<8>(first, packed, bytes);
    if (bytes >= 4) return halves<4>(first, packed, bytes);
    if (bytes >= 2) return halves<2>(first, packed, bytes);
    Way::copy(first, packed, 1);
  }
  template <std::size_t half>
  static void halves(Address first, Pointer packed, std::size_t bytes) noexcept {
    Way::copy(first, packed, half);
    Way::copy(first + bytes - half, packed + bytes - half, half);
  }

  Pointer packed_;
};

}  // namespace

void* LayoutCursor::operator new(std::size_t) { return SpareMemory<LayoutCursor>::take(); }
void LayoutCursor::operator delete(void* memory) noexcept { SpareMemory<LayoutCursor>::give(memory); }

LayoutCursor::LayoutCursor(std::byte* origin, const Layout& layout, std::size_t count, std::ptrdiff_t extent)
    : origin_(address(origin) + static_cast<Address>(layout.first_)) {
  if (__builtin_mul_overflow(layout.size(), count, &bytes_) ||
      bytes_ > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
    throw std::length_error("data of 2^63 bytes or more");
  }
  if (bytes_ == 0) return;
  runs_ = layout.runs_ * count;
  node_ = layout.node_;
  extent_ = extent;
  storage_ = layout.storage_;
  (void)node_.repeat(count, extent);
}

LayoutCursor::LayoutCursor(std::byte* origin, std::span<const Block> blocks, std::size_t element_bytes,
                           std::size_t bytes) noexcept
    : origin_(address(origin)), bytes_(bytes), runs_(blocks.size()), listed_{blocks.data(), blocks.data(), 0, 0} {
  node_.unit = element_bytes;
}

std::optional<std::span<std::byte>> LayoutCursor::dense() const noexcept {
  const bool is_run = node_.kind == Kind::run && bytes_ == node_.bytes;
  if (!is_run) return std::nullopt;
  return std::span(reinterpret_cast<std::byte*>(origin_), bytes_);
}

template <class Way>
void LayoutCursor::move(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) noexcept {
  MoveSink<Way> sink(packed);
  walk(offset, bytes, sink);
}

void LayoutCursor::pack(std::size_t offset, std::byte* to, std::size_t bytes) noexcept {
  move<Packing>(offset, to, bytes);
}

void LayoutCursor::unpack(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept {
  move<Unpacking>(offset, from, bytes);
}

void copy(LayoutCursor& into, LayoutCursor& from) noexcept {
  const std::size_t bytes = std::min(into.bytes(), from.bytes());
  if (bytes == 0) return;
  if (const auto buffer = into.dense()) return from.pack(0, buffer->data(), bytes);
  if (const auto buffer = from.dense()) return into.unpack(0, buffer->data(), bytes);
  std::array<std::byte, 16 * 1024> packed;  // stays in the first cache
  for (std::size_t done = 0; done < bytes; done += packed.size()) {
    const std::size_t part = std::min(packed.size(), bytes - done);
    from.pack(done, packed.data(), part);
    into.unpack(done, packed.data(), part);
  }
}

}  // namespace tonari::message
