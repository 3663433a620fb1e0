#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace tonari::share {

/// A digest by XXH3-128.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Digest&) const = default;
};
[[nodiscard]] Digest digest_of(std::span<const std::byte> bytes) noexcept;

// The layout of a checkpoint file. Little-endian; offsets in bytes.
//
//   0        80                                      front_bytes                                file_bytes
//   +--------+--------------+----------------+-------+---------+---------+-----+----------------+
//   | header | size of each | digest of each | zeros | array 0 | array 1 | ... | the last array |
//   |        | array, 8     | piece, 16      |       | each in whole pages                      |
//   +--------+--------------+----------------+-------+---------+---------+-----+----------------+
//            |------------- front_digest ------------|---------- the pieces' digests -----------|
//
// A piece has piece_bytes of an array; the last one may be shorter. Pieces are in the order of the file. Digests cover
// every byte.
struct alignas(8) CheckpointHeader {
  static constexpr std::array<char, 8> magic_of_all{'t', 'o', 'n', 'a', 'r', 'i', '\0', 'C'};
  static constexpr std::uint32_t version_now = 1;

  std::array<char, 8> magic = magic_of_all;
  std::uint32_t version = version_now;
  std::uint32_t arrays = 0;
  std::uint64_t front_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t step = 0;      // the program's step number
  std::uint64_t identity = 0;  // a random number per save
  Digest front_digest;         // of the front after the header
  Digest header_digest;        // of the header up to here

  [[nodiscard]] Digest digest() const noexcept;
};
static_assert(sizeof(CheckpointHeader) == 80 && offsetof(CheckpointHeader, header_digest) == 64);
static_assert(std::has_unique_object_representations_v<CheckpointHeader>, "padding would be covered by no digest");
static_assert(std::endian::native == std::endian::little);

/// The layout of a checkpoint of arrays of the given sizes.
class CheckpointLayout {
 public:
  static constexpr std::uint64_t piece_bytes = 1024 * 1024;

  struct Piece {
    std::size_t array;
    std::uint64_t offset;  // offset in the array
    std::uint64_t bytes;
    std::uint64_t place;  // offset in the file
  };

  /// `sizes`: the sizes of the arrays, as the program requested them.
  explicit CheckpointLayout(std::vector<std::uint64_t> sizes);

  [[nodiscard]] const std::vector<std::uint64_t>& sizes() const noexcept { return sizes_; }
  [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::uint64_t front_bytes() const noexcept { return front_bytes_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }

  /// Returns everything before the arrays. `digests`: one per piece.
  [[nodiscard]] std::vector<std::byte> front(std::uint64_t step, std::uint64_t identity,
                                             std::span<const Digest> digests) const;

 private:
  std::vector<std::uint64_t> sizes_;
  std::vector<Piece> pieces_;
  std::uint64_t front_bytes_;
  std::uint64_t file_bytes_;
};

/// The front of a checkpoint, read and verified.
struct CheckpointFront {
  CheckpointHeader header;
  std::vector<std::uint64_t> sizes;
  std::vector<Digest> digests;
};

/// Throws SetupError if the header is not of a checkpoint, has another version, is torn, or is of a file of another
/// size.
void check_header(const CheckpointHeader& header, std::uint64_t file_bytes);
/// Throws SetupError if the front is torn. `front` begins with a header that was checked.
CheckpointFront decode_front(std::span<const std::byte> front);

}  // namespace tonari::share
