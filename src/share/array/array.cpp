#include "share/array/array.hpp"

#include "base/error.hpp"
#include "job/memory.hpp"
#include "job/signals.hpp"
#include "share/shared_memory.hpp"
#include "window/state/window_state.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tonari::share {

namespace {

FileDescriptor make_file(std::uint64_t bytes) {
  FileDescriptor file{::memfd_create("tonari-share", MFD_CLOEXEC)};
  if (!file) throw_system_error("memfd_create for shared memory", "raise the limit of open files: see ulimit -n");
  const job::FileSizeSignalHeld held;
  if (::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(fmt::format("making {} bytes of shared memory", bytes), "see ulimit -f");
  }
  return file;
}

void map_at(std::byte* start, std::uint64_t bytes, int file) {
  constexpr int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  void* const got = ::mmap(start, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (got == MAP_FAILED || ::madvise(got, bytes, MADV_DONTFORK) != 0) {
    throw_system_error(fmt::format("mmap of {} bytes of shared memory", bytes),
                       "free memory, or raise the limit: see ulimit -v and vm.max_map_count");
  }
}

}  // namespace

Array::Array(SharedMemory& shared_memory, std::uint32_t number, std::byte* start, PagePlacement plan,
             const ArrayOptions& options)
    : detail::Memory({start, plan.bytes()}),
      shared_memory_(shared_memory),
      number_(number),
      plan_(std::move(plan)),
      named_(options.writes_are_named),
      updates_(options.updates),
      homes_move_(options.homes_move && !named_ && shared_memory.size() <= 64),
      file_(make_file(plan_.bytes())),
      file_bytes_(file_.number(), plan_.bytes(), "shared memory"),
      twins_(Mapping::of_sparse_zeros(plan_.bytes(), "twins of shared memory")),
      table_(Mapping::of_sparse_zeros(blocks() * sizeof(PageBlock), "a table of shared memory")),
      dirty_(blocks()),
      stale_(blocks()),
      renewing_(blocks()) {
  map_at(start, plan_.bytes(), file_.number());
  shared_memory_.faults().watch(address_of(0), plan_.bytes());
  shared_memory_.add(*this);
}

// Other ranks may need pages that have their home here until all ranks have reached the barrier.
Array::~Array() {
  if (!shared_memory_.engine().session().in_own_process()) return;  // in a forked child: the rest belongs to the parent
  leaves_.store(true, std::memory_order_relaxed);
  if (!shared_memory_.unwinds())
    (void)shared_memory_.window().barrier();  // fails only if a rank died; then the array is given up anyway
  shared_memory_.remove(*this);
  shared_memory_.faults().unwatch(address_of(0), bytes().size());
  shared_memory_.range().give_back(bytes().data());
}

PageBlock& Array::block(std::size_t index) noexcept {
  return reinterpret_cast<PageBlock*>(table_.bytes().data())[index];
}

// Fills in the homes. Everything else starts as zeros.
void Array::begin(PageBlock& block, std::size_t index) const noexcept {
  if (block.is_begun) return;
  block.is_begun = true;
  const std::uint64_t first = index * pages_per_block;
  const std::uint64_t end = std::min<std::uint64_t>(first + pages_per_block, plan_.pages());
  for (std::uint64_t page = first; page < end;) {
    const int home = plan_.home_of(page);
    const std::uint64_t run = std::min(plan_.run_at(page), end - page);
    for (std::uint64_t i = 0; i < run; ++i) block.homes[page - first + i] = static_cast<std::uint32_t>(home);
    if (home == shared_memory_.rank()) block.states.become_home(bits(page - first, run));
    page += run;
  }
}

bool Array::is_home(std::uint64_t page) noexcept {
  PageBlock& block = this->block(page / pages_per_block);
  const std::lock_guard guard(block.lock);
  begin(block, page / pages_per_block);
  return has(block.states.home(), page % pages_per_block);
}

JobRank Array::home_of(std::uint64_t offset) const noexcept {
  return JobRank{plan_.home_of_byte(offset, shared_memory_.rank())};
}

void Array::wrote(std::uint64_t offset, std::uint64_t count) noexcept {
  plan_.expect_inside(offset, count, shared_memory_.rank());
  if (!named_ || count == 0 || offset >= bytes().size()) return;
  count = std::min(count, bytes().size() - offset);
  {
    const std::lock_guard guard(named_mutex_);
    if (!written_.empty() && written_.back().offset + written_.back().bytes == offset) {
      written_.back().bytes += count;
    } else {
      written_.push_back({offset, count});
    }
  }
  shared_memory_.has_dirty();
}

MappedArray::MappedArray(Job& job, SharedMemory& shared_memory, std::byte* start, PagePlacement plan)
    : detail::Memory({start, plan.bytes()}),
      shared_memory_(shared_memory),
      plan_(std::move(plan)),
      window_(job, job.rank() == 0 ? plan_.bytes() : 0, WindowOptions{.locks = 0, .notifications = 0}) {
  job::Pool& pool = job.session().arena().pool();
  const auto place = pool.place_of(window_.direct(window_.at(JobRank{0})));
  if (!place) throw SetupError("a shared array: its memory is not mapped here");
  pool.map_at(start, *place, plan_.bytes());
}

void MappedArray::wrote(std::uint64_t offset, std::uint64_t count) noexcept {
  plan_.expect_inside(offset, count, shared_memory_.rank());
}

JobRank MappedArray::home_of(std::uint64_t offset) const noexcept {
  return JobRank{plan_.home_of_byte(offset, shared_memory_.rank())};
}

// All ranks map the same memory, so there is nothing to send.
Status MappedArray::barrier_with_multicast(std::uint64_t offset, std::uint64_t count) noexcept {
  if (const Status status = shared_memory_.barrier(); status != Status::ok) return status;
  return offset <= bytes().size() && count <= bytes().size() - offset ? Status::ok : Status::bounds;
}

MappedArray::~MappedArray() { shared_memory_.range().give_back(bytes().data()); }

}  // namespace tonari::share
