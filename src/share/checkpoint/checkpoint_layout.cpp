#include "share/checkpoint/checkpoint_layout.hpp"

#include "share/array/page_block.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tonari::share {

namespace {

constexpr std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return (std::max<std::uint64_t>(bytes, 1) + page_bytes - 1) / page_bytes * page_bytes;  // like PagePlacement::bytes()
}

constexpr const char* remedy = "load an older one, or begin anew";

}  // namespace

Digest digest_of(std::span<const std::byte> bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Digest CheckpointHeader::digest() const noexcept {
  return digest_of(std::as_bytes(std::span(this, 1)).first(offsetof(CheckpointHeader, header_digest)));
}

CheckpointLayout::CheckpointLayout(std::vector<std::uint64_t> sizes) : sizes_(std::move(sizes)) {
  for (std::size_t array = 0; array < sizes_.size(); ++array) {
    const std::uint64_t end = whole_pages(sizes_[array]);
    for (std::uint64_t offset = 0; offset < end; offset += piece_bytes) {
      pieces_.push_back({array, offset, std::min(piece_bytes, end - offset), 0});
    }
  }
  front_bytes_ =
      whole_pages(sizeof(CheckpointHeader) + sizes_.size() * sizeof sizes_[0] + pieces_.size() * sizeof(Digest));
  file_bytes_ = front_bytes_;
  for (Piece& piece : pieces_) {
    piece.place = file_bytes_;
    file_bytes_ += piece.bytes;
  }
}

std::vector<std::byte> CheckpointLayout::front(std::uint64_t step, std::uint64_t identity,
                                               std::span<const Digest> digests) const {
  std::vector<std::byte> front(front_bytes_);
  const auto sizes = std::as_bytes(std::span(sizes_));
  const auto behind = std::span(front).subspan(sizeof(CheckpointHeader));
  std::ranges::copy(sizes, behind.begin());
  std::ranges::copy(std::as_bytes(digests), behind.subspan(sizes.size()).begin());

  CheckpointHeader header;
  header.arrays = static_cast<std::uint32_t>(sizes_.size());
  header.front_bytes = front_bytes_;
  header.file_bytes = file_bytes_;
  header.step = step;
  header.identity = identity;
  header.front_digest = digest_of(behind);
  header.header_digest = header.digest();
  std::memcpy(front.data(), &header, sizeof header);
  return front;
}

void check_header(const CheckpointHeader& header, std::uint64_t file_bytes) {
  if (header.magic != CheckpointHeader::magic_of_all) {
    throw SetupError(fmt::format("this is no checkpoint of tonari, or its beginning is torn; {}", remedy));
  }
  const bool is_of_now = header.version == CheckpointHeader::version_now;
  if (header.header_digest != header.digest()) {
    throw SetupError(is_of_now
                         ? fmt::format("its header is torn; {}", remedy)
                         : fmt::format("its header is torn, or of version {}, and this tonari reads version {}; {}",
                                       header.version, CheckpointHeader::version_now, remedy));
  }
  if (!is_of_now) {
    throw SetupError(
        fmt::format("it says version {}, and this tonari reads version {}: load it with the one that saved it",
                    header.version, CheckpointHeader::version_now));
  }
  if (header.file_bytes != file_bytes) {
    throw SetupError(fmt::format("it has {} bytes, and should have {}; {}", file_bytes, header.file_bytes, remedy));
  }
  if (header.front_bytes < sizeof header || header.front_bytes > file_bytes)
    throw SetupError(fmt::format("its header is wrong; {}", remedy));
}

CheckpointFront decode_front(std::span<const std::byte> front) {
  CheckpointFront decoded;
  std::memcpy(&decoded.header, front.data(), sizeof decoded.header);
  auto rest = front.subspan(sizeof decoded.header);
  if (digest_of(rest) != decoded.header.front_digest) {
    throw SetupError(fmt::format("its table of checksums is torn; {}", remedy));
  }
  const auto take = [&rest](auto& values, std::size_t count) {
    const std::size_t bytes = std::min(count * sizeof values[0], rest.size());  // shorter only if the file is malformed
    values.resize(count);
    std::ranges::copy(rest.first(bytes), std::as_writable_bytes(std::span(values)).begin());
    rest = rest.subspan(bytes);
  };
  take(decoded.sizes, decoded.header.arrays);
  take(decoded.digests, CheckpointLayout(decoded.sizes).pieces().size());
  return decoded;
}

}  // namespace tonari::share
