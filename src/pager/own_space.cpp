#include "pager/own_space.hpp"

#include "base/error.hpp"

#include <sys/mman.h>

#include <cstring>

namespace tonari::pager {

namespace {

std::byte* align(std::byte* start) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  return start + ((block_bytes - address % block_bytes) % block_bytes);
}

void* pointer(Address address) noexcept { return reinterpret_cast<void*>(address); }

}  // namespace

OwnSpace::OwnSpace(std::size_t buffers, Userfaultfd::Options options)
    : Space(Userfaultfd(options)),
      count_(buffers),
      memory_(Mapping::of_zeros((buffers + 1) * block_bytes, "the pager's buffers")),
      start_(align(memory_.bytes().data())),
      nursery_memory_(Mapping::of_zeros(2 * block_bytes, "the pager's huge pages")),
      placing_({&watch_, &faults()}, reinterpret_cast<Address>(align(nursery_memory_.bytes().data()))) {
  (void)::madvise(align(nursery_memory_.bytes().data()), block_bytes,
                  MADV_HUGEPAGE);  // refused: then they are small, which is slower
  watch_.watch(reinterpret_cast<Address>(start_), buffers * block_bytes);
}

Progress OwnSpace::Calls::move_out(Address to, Address from, std::size_t bytes, Holes holes) const noexcept {
  return watch->move(to, from, bytes, holes);
}
Progress OwnSpace::Calls::move_in(Address to, Address from, std::size_t bytes, Holes holes) const noexcept {
  return faults->move(to, from, bytes, holes);
}
void OwnSpace::Calls::zero(Address to, std::size_t bytes) const noexcept { (void)watch->zero(to, bytes); }
void OwnSpace::Calls::drop(Address start, std::size_t bytes) noexcept {
  (void)::madvise(pointer(start), bytes, MADV_DONTNEED);  // refused: it is unmapped already
}
bool OwnSpace::Calls::populate(Address start, std::size_t bytes) noexcept {
  return ::madvise(pointer(start), bytes, MADV_POPULATE_WRITE) == 0;
}
bool OwnSpace::Calls::look_up(Address start, std::size_t bytes, unsigned char* pages) noexcept {
  return ::mincore(pointer(start), bytes, pages) == 0;
}

void OwnSpace::prepare(Address start, std::size_t bytes) {
  if (::madvise(pointer(start), bytes, MADV_DONTFORK) != 0) {
    throw_system_error("madvise(MADV_DONTFORK) of a region", "the range must be mapped, and begin at a page");
  }
}

void OwnSpace::drop(Address start, std::size_t bytes) noexcept { Calls::drop(start, bytes); }

PageSet OwnSpace::take_out(Address block, const PageSet& pages, Buffer buffer) noexcept {
  return placing_.take_out(block, pages, address_of(buffer));
}

PageSet OwnSpace::move_in(Address block, const PageSet& pages, Buffer buffer) noexcept {
  return placing_.move_in(block, pages, address_of(buffer));
}

bool OwnSpace::stock(Buffer buffer) noexcept {
  const std::lock_guard guard(nursery_mutex_);
  return placing_.stock(address_of(buffer));
}

void OwnSpace::empty(Buffer buffer) noexcept { placing_.empty(address_of(buffer)); }

std::byte* OwnSpace::view(Buffer buffer, std::size_t place) noexcept { return start_of(buffer) + place; }

bool OwnSpace::read(Buffer buffer, std::size_t place, std::span<std::byte> into) noexcept {
  std::memcpy(into.data(), view(buffer, place), into.size());
  return true;
}

bool OwnSpace::write(Buffer buffer, std::size_t place, std::span<const std::byte> from) noexcept {
  std::memcpy(view(buffer, place), from.data(), from.size());
  return true;
}

std::byte* OwnSpace::start_of(Buffer buffer) const noexcept {
  return start_ + static_cast<std::size_t>(buffer) * block_bytes;
}

Address OwnSpace::address_of(Buffer buffer) const noexcept { return reinterpret_cast<Address>(start_of(buffer)); }

}  // namespace tonari::pager
