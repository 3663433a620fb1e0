#include "fabric/transfer.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace tonari::fabric {

std::optional<Tickets::Ticket> Tickets::take(unsigned spare) noexcept {
  const std::lock_guard guard(lock_);
  unsigned left = 0;
  for (const std::uint64_t word : free_) left += static_cast<unsigned>(std::popcount(word));
  if (left <= spare) return std::nullopt;
  for (std::size_t word = 0; word < free_.size(); ++word) {
    if (free_[word] == 0) continue;
    const auto index = static_cast<std::uint32_t>(word * 64 + static_cast<unsigned>(std::countr_zero(free_[word])));
    free_[word] &= free_[word] - 1;
    const std::uint32_t generation = ++generation_[index];
    memory_[index].open(generation);
    return Ticket{index, generation};
  }
  return std::nullopt;
}

void Tickets::give_back(std::uint32_t index) noexcept {
  const std::lock_guard guard(lock_);
  free_[index / 64] |= std::uint64_t{1} << (index % 64);
}

namespace {

Status status_of_errno() noexcept {
  switch (errno) {
    case EPERM:
    case EACCES: return Status::denied;
    case ESRCH: return Status::peer_gone;
    default: return Status::bad_address;
  }
}

using VectorCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel copies at most 2 GiB per call and stops early at a page that is not accessible.
Status copy_by(VectorCall call, int pid, std::byte* here, std::uint64_t there, std::size_t bytes) noexcept {
  while (bytes != 0) {
    const iovec local{here, bytes};
    const iovec remote{reinterpret_cast<void*>(there), bytes};
    const ssize_t copied = call(pid, &local, 1, &remote, 1, 0);
    if (copied <= 0) {
      if (copied < 0 && errno == EINTR) continue;
      return copied < 0 ? status_of_errno() : Status::bad_address;
    }
    here += copied;
    there += static_cast<std::uint64_t>(copied);
    bytes -= static_cast<std::size_t>(copied);
  }
  return Status::ok;
}

// Returns how many stretches one call copies completely; the call stops early at a page that is not accessible.
std::size_t copy_first_by(VectorCall call, int pid, std::span<const iovec> here,
                          std::span<const iovec> there) noexcept {
  const ssize_t copied = call(pid, here.data(), here.size(), there.data(), there.size(), 0);
  std::size_t left = copied < 0 ? 0 : static_cast<std::size_t>(copied);
  std::size_t whole = 0;
  while (whole < here.size() && here[whole].iov_len <= left) left -= here[whole++].iov_len;
  return copied < 0 ? 0 : whole;
}

// Copies all in one call; if the kernel stops early, copies the others one by one.
Status copy_by(VectorCall call, int pid, std::span<const iovec> here, std::span<const iovec> there) noexcept {
  Status status = Status::ok;
  for (std::size_t i = copy_first_by(call, pid, here, there); i < here.size() && status == Status::ok; ++i) {
    status = copy_by(call, pid, static_cast<std::byte*>(here[i].iov_base),
                     reinterpret_cast<std::uint64_t>(there[i].iov_base), here[i].iov_len);
  }
  return status;
}

// Copies between stretches here and contiguous memory there in one call; if the kernel stops early, copies the rest
// stretch by stretch.
Status copy_by(VectorCall call, int pid, std::span<const iovec> here, std::uint64_t there) noexcept {
  std::size_t bytes = 0;
  for (const iovec& stretch : here) bytes += stretch.iov_len;
  const iovec remote{reinterpret_cast<void*>(there), bytes};
  const ssize_t copied = call(pid, here.data(), here.size(), &remote, 1, 0);
  std::size_t done = copied < 0 ? 0 : static_cast<std::size_t>(copied);
  if (done == bytes) return Status::ok;
  for (const iovec& stretch : here) {
    const std::size_t part = std::min(done, stretch.iov_len);
    const Status status =
        copy_by(call, pid, static_cast<std::byte*>(stretch.iov_base) + part, there + part, stretch.iov_len - part);
    if (status != Status::ok) return status;
    there += stretch.iov_len;
    done -= part;
  }
  return Status::ok;
}

void copy_here(std::span<const iovec> to, std::span<const iovec> from) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].iov_len != 0) std::memcpy(to[i].iov_base, from[i].iov_base, to[i].iov_len);
  }
}

}  // namespace

Status DirectCopy::read(std::span<const iovec> here, std::span<const iovec> there) const noexcept {
  if (!same_memory_) return copy_by(::process_vm_readv, pid_, here, there);
  copy_here(here, there);
  return Status::ok;
}

Status DirectCopy::write(std::span<const iovec> here, std::span<const iovec> there) const noexcept {
  if (!same_memory_) return copy_by(::process_vm_writev, pid_, here, there);
  copy_here(there, here);
  return Status::ok;
}

Status DirectCopy::read(std::span<const iovec> here, std::uint64_t from) const noexcept {
  if (!same_memory_) return copy_by(::process_vm_readv, pid_, here, from);
  for (const iovec& stretch : here) {
    if (stretch.iov_len != 0) std::memcpy(stretch.iov_base, reinterpret_cast<const void*>(from), stretch.iov_len);
    from += stretch.iov_len;
  }
  return Status::ok;
}

Status DirectCopy::write(std::uint64_t to, std::span<const iovec> here) const noexcept {
  if (!same_memory_) return copy_by(::process_vm_writev, pid_, here, to);
  for (const iovec& stretch : here) {
    if (stretch.iov_len != 0) std::memcpy(reinterpret_cast<void*>(to), stretch.iov_base, stretch.iov_len);
    to += stretch.iov_len;
  }
  return Status::ok;
}

std::size_t DirectCopy::read_first(std::span<const iovec> here, std::span<const iovec> there) const noexcept {
  if (!same_memory_) return copy_first_by(::process_vm_readv, pid_, here, there);
  copy_here(here, there);
  return here.size();
}

std::size_t DirectCopy::write_first(std::span<const iovec> here, std::span<const iovec> there) const noexcept {
  if (!same_memory_) return copy_first_by(::process_vm_writev, pid_, here, there);
  copy_here(there, here);
  return here.size();
}

Status DirectCopy::read(std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept {
  if (same_memory_) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return Status::ok;
  }
  return copy_by(::process_vm_readv, pid_, to, from, bytes);
}

Status DirectCopy::write(std::uint64_t to, const std::byte* from, std::size_t bytes) const noexcept {
  if (same_memory_) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return Status::ok;
  }
  return copy_by(::process_vm_writev, pid_, const_cast<std::byte*>(from), to, bytes);
}

}  // namespace tonari::fabric
