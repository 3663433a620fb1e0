#include "far/preload/statics.hpp"

#include "far/preload/begin.hpp"
#include "far/preload/choice.hpp"
#include "far/preload/descriptors.hpp"
#include "far/preload/inherited.hpp"
#include "far/preload/libraries.hpp"
#include "far/preload/requests.hpp"
#include "far/preload/static_objects.hpp"
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

  /// Returns true once it could not be known.
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// Returns true if it cannot be known. Call it for ascending addresses.
  [[nodiscard]] bool has(Address at) noexcept {
    const Address page = at / page_bytes;
    if (page < first_ || page >= first_ + words_.size()) {
      first_ = page;
      const long got = system_call(SYS_pread64, file_, words_.data(), sizeof words_, page * sizeof(std::uint64_t));
      known_ = is_error(got) ? 0 : static_cast<std::size_t>(got) / sizeof(std::uint64_t);
      has_failed_ = has_failed_ || known_ == 0;
    }
    constexpr std::uint64_t present_or_swapped = 3ULL << 62;
    return page - first_ >= known_ || (words_[page - first_] & present_or_swapped) != 0;
  }

 private:
  long file_;
  Address first_ = 0;
  std::size_t known_ = 0;  // words that were read
  bool has_failed_ = false;
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

// Prepares a range for the keeper. Other threads find it in `statics` and in `unreached` before a page can be absent.
// Returns false if there are too many ranges.
bool prepare(Range range) noexcept {
  const std::size_t count = program.statics_count.load(std::memory_order_relaxed);
  if (count == Program::statics_max || (may_be_unreached() && !unreached.add(range.start, range.bytes))) return false;
  program.statics[count] = range;
  program.statics_count.store(count + 1, std::memory_order_release);  // (1): see statics()
  (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DONTFORK);
  (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DONTDUMP);
  return true;
}

// The keeper has refused the range. In `unreached` it does no harm.
void undo_prepare(Range range) noexcept {
  program.statics_count.fetch_sub(1, std::memory_order_relaxed);
  (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DOFORK);
  (void)system_call(SYS_madvise, range.start, range.bytes, MADV_DODUMP);
}

// For a single thread. The keeper must know of each page that is present. So the contents are written back after the
// keeper has begun to serve the faults of the range.
void move_to_far(const StaticRange& range) noexcept {
  const auto meanwhile = WithoutSignals::but_faults();
  const Address away = move_away(range);
  if (away == 0) return;
  if (prepare(range) && ask(Request::What::watch, range) != 0) undo_prepare(range);
  copy_back(range, away);
  (void)system_call(SYS_munmap, away, range.bytes);
}

// Pages that were only read are the kernel's page of zeros, which cannot leave: they get memory of their own.
bool tell_present(Range run) noexcept {
  return !is_error(system_call(SYS_madvise, run.start, run.bytes, MADV_POPULATE_WRITE)) &&
         ask(Request::What::know_present, run) == 0;
}

// Tells the keeper of all pages that are present. No others become present without its knowledge.
void tell_all_present(Range range) noexcept {
  Touched touched;
  bool done = true;
  for (Address at = range.start; at < range.end();) {
    const Address first = at;
    const bool is_present = touched.has(at);
    while (at < range.end() && touched.has(at) == is_present) at += page_bytes;
    if (touched.has_failed()) return;  // the pages that are present stay local
    if (is_present) done = tell_present({first, at - first}) && done;
  }
  if (done) (void)ask(Request::What::know_all_present, range);
}

// For memory that other threads may be using: pages that are present stay where they are. No fork happens meanwhile.
void watch_in_use(Range range) noexcept {
  const Guard guard(program.beginning);
  if (!prepare(range)) return;
  if (ask(Request::What::watch_in_use, range) == 0) {
    tell_all_present(range);
  } else {
    undo_prepare(range);
  }
}

void make_far(const StaticRange& range) noexcept {
  if (meets_inherited(range)) return;
  if (__libc_single_threaded != 0) return move_to_far(range);
  if (!range.is_in_file) watch_in_use(range);
}

// Returns true if every system call reaches far memory. A process that has not begun tries to open a userfaultfd.
bool calls_reach_everything() noexcept {
  if (is_ready()) return !may_be_unreached();
  if (program.faults == FaultsBy::threads || (program.faults == FaultsBy::choice && suits_own_faults())) return false;
  const OpenedFaults faults = open_userfaultfd();
  if (faults.descriptor >= 0) (void)system_call(SYS_close, faults.descriptor);
  return faults.reaches_everything;
}

// The files whose static variables are far memory, or were looked at before main(). They stay loaded.
struct Files {
  static constexpr std::size_t files_max = 256;
  std::array<Address, files_max> known{};  // their program headers; under program.beginning, as `count`
  std::size_t count = 0;

  [[nodiscard]] bool has(Address headers) noexcept {
    const Guard guard(program.beginning);
    return std::ranges::find(known.begin(), known.begin() + count, headers) != known.begin() + count;
  }
  // Returns false if another thread has added it, or if there are too many.
  bool add(Address headers) noexcept {
    const Guard guard(program.beginning);
    const auto end = known.begin() + count;
    if (count == files_max || std::find(known.begin(), end, headers) != end) return false;
    known[count++] = headers;
    return true;
  }
};
constinit Files files{};

// Looks twice: the library may have been unloaded, and another one loaded, before it is kept.
void make_far(Address headers, const StaticSearch& wanted, bool is_known) noexcept {
  LoadedFile file;
  std::array<StaticRange, Program::statics_max> found{};
  if (find_static_objects(headers, wanted, file, found) == 0 || !make_ready() || !keep_loaded(file)) return;
  if (!is_known && !files.add(headers)) return;
  const std::size_t count = find_static_objects(headers, wanted, file, found);
  for (const StaticRange& each : std::span(found).first(count)) make_far(each);
}

enum class When : std::uint8_t { start, later };

void use_static_memory_of(When when) noexcept {
  const std::size_t bytes_min = program.bytes_min.load(std::memory_order_relaxed);
  std::array<Address, Files::files_max> large{};
  const std::size_t count = find_large_files(bytes_min, large);
  for (const Address headers : std::span(large).first(count)) {
    if (files.has(headers)) continue;
    const bool is_known = when == When::start && files.add(headers);
    make_far(headers, {bytes_min, calls_reach_everything()}, is_known);
  }
}

}  // namespace

void use_static_memory() noexcept { use_static_memory_of(When::start); }

void use_static_memory_of_libraries() noexcept {
  if (!is_ready() && !program.may_begin.load(std::memory_order_relaxed)) return;
  const int before = errno;
  use_static_memory_of(When::later);
  errno = before;
}

}  // namespace tonari::far
