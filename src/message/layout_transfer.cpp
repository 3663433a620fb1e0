#include "message/layout_transfer.hpp"

#include <algorithm>
#include <array>

namespace tonari::message {

namespace {

constexpr std::size_t part_bytes_max = 32 * 1024;

}  // namespace

Status write_packed(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t to,
                    std::size_t bytes) noexcept {
  std::array<std::byte, part_bytes_max> packed;
  Status status = Status::ok;
  for (std::size_t done = 0; done < bytes && status == Status::ok; done += packed.size()) {
    const std::size_t part = std::min(packed.size(), bytes - done);
    data.pack(offset + done, packed.data(), part);
    status = copy.write(to + done, packed.data(), part);
  }
  return status;
}

Status read_packed(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                   std::size_t bytes) noexcept {
  std::array<std::byte, part_bytes_max> packed;
  for (std::size_t done = 0; done < bytes; done += packed.size()) {
    const std::size_t part = std::min(packed.size(), bytes - done);
    const Status status = copy.read(packed.data(), from + done, part);
    if (status != Status::ok) return status;
    data.unpack(offset + done, packed.data(), part);
  }
  return Status::ok;
}

}  // namespace tonari::message
