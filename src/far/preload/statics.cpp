#include "far/preload/statics.hpp"

#include "far/preload/begin.hpp"
#include "far/preload/descriptors.hpp"
#include "far/preload/requests.hpp"
#include "far/preload/static_objects.hpp"
#include "preload/masks.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tonari::far {

namespace {

// Reads from /proc/self/pagemap which pages of anonymous memory were ever touched.
class Touched {
 public:
  Touched() noexcept : file_(system_call(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0)) {}
  Touched(const Touched&) = delete;
  Touched& operator=(const Touched&) = delete;
  ~Touched() {
    if (!is_error(file_)) (void)system_call(SYS_close, file_);
  }

  /// Returns true if it cannot be known. Call it for ascending addresses.
  [[nodiscard]] bool has(Address at) noexcept {
    const Address page = at / page_bytes;
    if (page < first_ || page >= first_ + words_.size()) {
      first_ = page;
      const long got = system_call(SYS_pread64, file_, words_.data(), sizeof words_, page * sizeof(std::uint64_t));
      known_ = is_error(got) ? 0 : static_cast<std::size_t>(got) / sizeof(std::uint64_t);
    }
    constexpr std::uint64_t present_or_swapped = 3ULL << 62;
    return page - first_ >= known_ || (words_[page - first_] & present_or_swapped) != 0;
  }

 private:
  long file_;
  Address first_ = 0;
  std::size_t known_ = 0;  // words that were read
  std::array<std::uint64_t, 512> words_{};
};

bool is_zeros(const std::byte* page) noexcept {
  constexpr std::array<std::byte, page_bytes> zeros{};
  return std::memcmp(page, zeros.data(), page_bytes) == 0;
}

void copy_back(const StaticRange& range, Address from) noexcept {
  Touched touched;
  for (std::size_t done = 0; done < range.bytes; done += page_bytes) {
    if (!range.is_in_file && !touched.has(from + done)) continue;
    const auto* const page = static_cast<const std::byte*>(pointer_to(from + done));
    if (!is_zeros(page)) std::memcpy(pointer_to(range.start + done), page, page_bytes);
  }
}

// Moves the pages of `range` elsewhere, and puts fresh anonymous memory in their place. Returns their new address; 0 on
// failure, which changes nothing.
Address move_away(Range range) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  constexpr int move = MREMAP_MAYMOVE | MREMAP_FIXED;
  const long room = system_call(SYS_mmap, nullptr, range.bytes, PROT_NONE, flags, -1, 0);
  if (is_error(room)) return 0;
  if (is_error(system_call(SYS_mremap, range.start, range.bytes, range.bytes, move, room))) {
    (void)system_call(SYS_munmap, room, range.bytes);
    return 0;
  }
  const long fresh = system_call(SYS_mmap, range.start, range.bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
  if (!is_error(fresh)) return static_cast<Address>(room);
  (void)system_call(SYS_mremap, room, range.bytes, range.bytes, move, range.start);
  return 0;
}

// The keeper must know of each page that is present. So the contents are written back after the keeper has begun to
// serve the faults of the range.
void make_far(const StaticRange& range) noexcept {
  const auto meanwhile = WithoutSignals::but_faults();
  const Address away = move_away(range);
  if (away == 0) return;
  (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DONTFORK);
  (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DONTDUMP);
  if (ask(Request::What::watch, range) == 0) {
    program.statics[program.statics_count++] = range;
    if (may_be_unreached()) unreached.add(range.start, range.bytes);
  } else {
    (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DOFORK);
    (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DODUMP);
  }
  copy_back(range, away);
  (void)system_call(SYS_munmap, away, range.bytes);
}

// Returns true if every system call reaches far memory. A process that has not begun tries to open a userfaultfd.
bool calls_reach_everything() noexcept {
  if (preload::faults_signal.load(std::memory_order_relaxed)) return false;
  if (is_ready()) return !may_be_unreached();
  const OpenedFaults faults = open_userfaultfd();
  if (faults.descriptor >= 0) (void)system_call(SYS_close, faults.descriptor);
  return faults.reaches_everything;
}

}  // namespace

void use_static_memory() noexcept {
  if (__libc_single_threaded == 0) return;
  std::array<StaticRange, Program::statics_max> found{};
  const std::size_t bytes_min = program.bytes_min.load(std::memory_order_relaxed);
  const std::size_t count = find_static_objects({bytes_min, calls_reach_everything()}, found);
  if (count == 0 || !make_ready()) return;
  for (const StaticRange& each : std::span(found).first(count)) make_far(each);
}

}  // namespace tonari::far
