#include "pager/own_space.hpp"

#include "base/error.hpp"
#include "base/unchecked_reads.hpp"
#include "pager/copying.hpp"

#include <sys/mman.h>

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
      scratch_(Mapping::of_sparse_zeros(workers_max * block_bytes, "the pager's scratch memory")),
      nursery_memory_(Mapping::of_zeros(2 * block_bytes, "the pager's huge pages")),
      placing_({&watch_, &faults()}, reinterpret_cast<Address>(align(nursery_memory_.bytes().data()))) {
  (void)::madvise(align(nursery_memory_.bytes().data()), block_bytes,
                  MADV_HUGEPAGE);  // on failure the pages are small, which is slower
  watch_.watch(reinterpret_cast<Address>(start_), buffers * block_bytes);
}

Progress OwnSpace::Calls::move_out(Address to, Address from, std::size_t bytes) const noexcept {
  return watch->move(to, from, bytes);
}
Progress OwnSpace::Calls::move_in(Address to, Address from, std::size_t bytes) const noexcept {
  return faults->move(to, from, bytes);
}
void OwnSpace::Calls::wake(Address start, std::size_t bytes) const noexcept { faults->wake(start, bytes); }
void OwnSpace::Calls::zero(Address to, std::size_t bytes) const noexcept { (void)watch->zero(to, bytes); }
bool OwnSpace::Calls::drop(Address start, std::size_t bytes) noexcept {
  return ::madvise(pointer(start), bytes, MADV_DONTNEED) == 0;  // fails if it is unmapped already
}
Answer OwnSpace::Calls::protect(Address start, std::size_t bytes, bool writes_wait) const noexcept {
  return faults->protect(start, bytes, writes_wait ? Userfaultfd::Writes::wait : Userfaultfd::Writes::go_on);
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

void OwnSpace::drop(Address start, std::size_t bytes) noexcept { (void)Calls::drop(start, bytes); }

PageSet OwnSpace::take_out(Address block, const PageSet& pages, Buffer buffer, Sums sums, SharedPages shared) noexcept {
  const PageSet taken = placing_.take_out(block, pages, address_of(buffer), shared);
  sum_pages(view(buffer), taken, sums);
  return taken;
}

PageSet OwnSpace::move_in(Address block, const PageSet& pages, Buffer buffer) noexcept {
  return placing_.move_in(block, pages, address_of(buffer));
}

bool OwnSpace::prefault(Buffer buffer) noexcept {
  const std::lock_guard guard(nursery_mutex_);
  return placing_.prefault(address_of(buffer));
}

void OwnSpace::empty(Buffer buffer) noexcept { placing_.empty(address_of(buffer)); }

std::byte* OwnSpace::view(Buffer buffer) noexcept { return start_ + static_cast<std::size_t>(buffer) * block_bytes; }

std::span<std::byte, block_bytes> OwnSpace::scratch(std::size_t worker) noexcept {
  return scratch_.bytes().subspan(worker * block_bytes).first<block_bytes>();
}

bool OwnSpace::fill(Buffer buffer, const std::byte* from, const PageSet& pages, Sums sums) noexcept {
  fill_pages(view(buffer), from, pages, sums);
  return true;
}

bool OwnSpace::read(Buffer buffer, const PageSet& pages, std::size_t first, std::byte* to) noexcept {
  copy_pages(to, first, view(buffer), pages);
  return true;
}

// A page that was given back to the kernel unseen becomes zeros first: nobody would serve this thread's fault there.
PageSet OwnSpace::protect(Address block, const PageSet& pages, Sums sums) noexcept {
  for_each_run(pages - placing_.present(block), block_pages, [&](std::size_t first, std::size_t count) {
    (void)faults().zero(block + first * page_bytes, count * page_bytes);
  });
  const PageSet done = placing_.protect(block, pages);
  const UncheckedReads protected_now;
  sum_pages(static_cast<const std::byte*>(pointer(block)), done, sums);
  return done;
}

bool OwnSpace::read_in_place(Address block, const PageSet& pages, std::size_t first, std::byte* to) noexcept {
  const UncheckedReads protected_now;
  copy_pages(to, first, static_cast<const std::byte*>(pointer(block)), pages);
  return true;
}

PageSet OwnSpace::drop_protected(Address block, const PageSet& pages, const PageSet& going) noexcept {
  return placing_.drop_protected(block, pages, going);
}

Address OwnSpace::address_of(Buffer buffer) const noexcept {
  return reinterpret_cast<Address>(start_) + static_cast<std::size_t>(buffer) * block_bytes;
}

}  // namespace tonari::pager
