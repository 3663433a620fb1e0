// A program that knows nothing of tonari: threads reserve address space with PROT_NONE, open and close parts of it in
// every way, free parts, and fork, and compare all contents with a model.
// Usage: far_reservations SEED THREADS STEPS MIB. Prints "ok" and exits with 0, or says what is wrong.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using Word = std::uint64_t;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t page_words = page_bytes / sizeof(Word);
constexpr std::size_t block_pages = 512;  // tonari's, so that some ranges begin or end at its blocks
constexpr int reserving = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
constexpr int everything = PROT_READ | PROT_WRITE;

thread_local sigjmp_buf after_fault;
thread_local volatile std::sig_atomic_t expects_fault = 0;
int generation = 0;

[[noreturn]] void wrong(const char* what, const void* place, Word found, Word expected) {
  std::fprintf(stderr, "generation %d: %s at %p: %llx instead of %llx\n", generation, what, place,
               static_cast<unsigned long long>(found), static_cast<unsigned long long>(expected));
  std::_Exit(1);
}

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "generation %d: %s: %s\n", generation, what, std::strerror(errno));
  std::_Exit(1);
}

void on_fault(int /*signal*/, siginfo_t* info, void* /*context*/) {
  if (expects_fault == 0) wrong("a fault", info->si_addr, 0, 0);
  siglongjmp(after_fault, 1);
}

Word word_of(Word version, std::size_t word) {
  return version == 0 ? 0 : (version * 0x9e3779b97f4a7c15ULL ^ word * 0xbf58476d1ce4e5b9ULL) | 1;
}

struct Page {
  int protection = PROT_NONE;
  bool is_mapped = true;
  Word version = 0;  // 0: zeros
};

/// A mapping and what is expected of each of its pages.
struct Piece {
  std::byte* start = nullptr;
  std::vector<Page> pages;

  [[nodiscard]] Word* words(std::size_t page) const { return reinterpret_cast<Word*>(start + page * page_bytes); }
};

struct Part {
  std::size_t first;
  std::size_t count;
};

/// One thread with mappings of its own.
class Worker {
 public:
  Worker(std::uint64_t seed, std::size_t pages_max) : random_(seed), pages_max_(pages_max) {
    check(::pipe(pipe_.data()) == 0, "pipe");
  }
  Worker(Worker&&) = delete;
  ~Worker() {
    for (const int end : pipe_) ::close(end);
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (pieces_.empty() || pages_ < pages_max_) reserve();
      this->step();
    }
    compare_all();
  }

 private:
  void step() {
    Piece& piece = pieces_[below(pieces_.size())];
    switch (below(20)) {
      case 0: return protect(piece, some_part(piece), PROT_NONE);
      case 1: return protect(piece, some_part(piece), PROT_READ);
      case 2: return protect(piece, some_part(piece), everything | PROT_EXEC);
      case 3:
      case 4:
      case 5: return protect(piece, some_part(piece), everything);
      case 6: return map_over(piece, some_part(piece), PROT_NONE, 0);
      case 7: return map_over(piece, some_part(piece), everything, 0);
      case 8: return map_over(piece, some_part(piece), below(2) == 0 ? PROT_READ : everything | PROT_EXEC, 0);
      case 9: return map_over(piece, some_part(piece), everything, MAP_STACK);
      case 10: return discard(piece, some_part(piece));
      case 11: return unmap(piece, some_part(piece));
      case 12: return fork();
      case 13: return compare_all();
      case 14: return meet_faults(piece);
      case 15: return through_the_kernel(piece);
      default: return write(piece, some_part(piece));
    }
  }

  std::size_t below(std::size_t end) { return random_() % end; }

  Part some_part(const Piece& piece) {
    const std::size_t size = piece.pages.size();
    std::size_t first = below(size);
    std::size_t end = first + 1 + below(std::min<std::size_t>(size - first, below(3) == 0 ? 16 : 4 * block_pages));
    const std::size_t before = reinterpret_cast<std::uintptr_t>(piece.start) / page_bytes % block_pages;
    const auto round = [&](std::size_t page) { return (page + before) / block_pages * block_pages; };
    if (below(3) == 0 && round(first) >= before) first = round(first) - before;
    if (below(3) == 0 && round(end) > first + before) end = round(end) - before;
    return {first, end - first};
  }

  // The first part of `part` whose pages all fulfil `is_good`.
  template <class Good>
  static Part first_with(const Piece& piece, Part part, Good is_good) {
    const auto begin = piece.pages.begin() + static_cast<std::ptrdiff_t>(part.first);
    const auto end = begin + static_cast<std::ptrdiff_t>(part.count);
    const auto first = std::find_if(begin, end, is_good);
    const auto last = std::find_if_not(first, end, is_good);
    return {static_cast<std::size_t>(first - piece.pages.begin()), static_cast<std::size_t>(last - first)};
  }
  static Part first_mapped(const Piece& piece, Part part) {
    return first_with(piece, part, [](const Page& page) { return page.is_mapped; });
  }

  template <class Change>
  static void change(Piece& piece, Part part, Change change) {
    const auto begin = piece.pages.begin() + static_cast<std::ptrdiff_t>(part.first);
    std::for_each(begin, begin + static_cast<std::ptrdiff_t>(part.count), change);
  }

  void reserve() {
    const std::size_t pages = 1 + below(below(2) == 0 ? 2 * block_pages : 8 * block_pages);
    const bool is_open = below(4) == 0;
    void* const start = ::mmap(nullptr, pages * page_bytes, is_open ? everything : PROT_NONE, reserving, -1, 0);
    check(start != MAP_FAILED, "reserving");
    Piece& piece = pieces_.emplace_back();
    piece = {static_cast<std::byte*>(start), std::vector<Page>(pages)};
    if (is_open) change(piece, {0, pages}, [](Page& page) { page.protection = everything; });
    pages_ += pages;
  }

  void protect(Piece& piece, Part wanted, int protection) {
    const Part part = first_mapped(piece, wanted);
    if (part.count == 0) return;
    check(::mprotect(piece.words(part.first), part.count * page_bytes, protection) == 0, "mprotect");
    change(piece, part, [=](Page& page) { page.protection = protection; });
    if (below(2) == 0) compare(piece, part);
  }

  void map_over(Piece& piece, Part wanted, int protection, int flags) {
    const Part part = first_mapped(piece, wanted);
    if (part.count == 0) return;
    void* const start = piece.words(part.first);
    check(::mmap(start, part.count * page_bytes, protection, reserving | MAP_FIXED | flags, -1, 0) == start, "mmap");
    change(piece, part, [=](Page& page) { page = {protection, true, 0}; });
    if (below(2) == 0) compare(piece, part);
  }

  // In a child, inherited memory that was protected becomes readable then.
  void discard(Piece& piece, Part wanted) {
    const Part part = first_with(piece, wanted, [](const Page& page) {
      return page.is_mapped && (generation == 0 || page.protection == everything);
    });
    if (part.count == 0) return;
    check(::madvise(piece.words(part.first), part.count * page_bytes, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    change(piece, part, [](Page& page) { page.version = 0; });
  }

  void unmap(Piece& piece, Part wanted) {
    const Part part = below(4) == 0 ? Part{0, piece.pages.size()} : first_mapped(piece, wanted);
    if (part.count == 0) return;
    if (part.count == piece.pages.size()) {
      for (Part rest = part; rest.count != 0;) {  // the parts that are still mapped
        const Part mapped = first_mapped(piece, rest);
        if (mapped.count == 0) break;
        unmap_mapped(piece, mapped);
        rest = {mapped.first + mapped.count, part.count - mapped.first - mapped.count};
      }
      pieces_.erase(pieces_.begin() + (&piece - pieces_.data()));
      return;
    }
    unmap_mapped(piece, part);
  }
  void unmap_mapped(Piece& piece, Part part) {
    check(::munmap(piece.words(part.first), part.count * page_bytes) == 0, "munmap");
    change(piece, part, [](Page& page) { page.is_mapped = false; });
    pages_ -= part.count;
  }

  void write(Piece& piece, Part part) {
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      Page& page = piece.pages[i];
      if (!page.is_mapped || (page.protection & PROT_WRITE) == 0) continue;
      page.version = ++versions_;
      for (std::size_t word = 0; word < page_words; ++word) piece.words(i)[word] = word_of(page.version, word);
    }
  }

  void compare(const Piece& piece, Part part) {
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      const Page& page = piece.pages[i];
      if (!page.is_mapped || (page.protection & PROT_READ) == 0) continue;
      const Word* const words = piece.words(i);
      for (std::size_t word = 0; word < page_words; ++word) {
        const Word expected = word_of(page.version, word);
        if (words[word] != expected) wrong("a word", words + word, words[word], expected);
      }
    }
  }
  void compare_all() {
    for (const Piece& piece : pieces_) compare(piece, {0, piece.pages.size()});
  }

  // Memory that is closed to the program raises SIGSEGV.
  void meet_faults(const Piece& piece) {
    for (int tries = 0; tries < 20; ++tries) {
      const std::size_t i = below(piece.pages.size());
      const Page& page = piece.pages[i];
      if (!page.is_mapped || page.protection != PROT_NONE) continue;
      volatile const Word* const word = piece.words(i) + below(page_words);
      if (sigsetjmp(after_fault, 1) == 0) {
        expects_fault = 1;
        const Word found = *word;
        wrong("a readable word", const_cast<const Word*>(word), found, 0);
      }
      expects_fault = 0;
    }
  }

  // write(2) and read(2) of memory that may be absent.
  void through_the_kernel(Piece& piece) {
    const std::size_t i = below(piece.pages.size());
    Page& page = piece.pages[i];
    if (!page.is_mapped || page.protection != everything) return;
    std::array<Word, page_words> copy{};
    check(::write(pipe_[1], piece.words(i), page_bytes) == page_bytes, "write");
    check(::read(pipe_[0], copy.data(), page_bytes) == page_bytes, "read");
    if (copy[9] != word_of(page.version, 9)) wrong("write(2)", piece.words(i), copy[9], word_of(page.version, 9));
    page.version = ++versions_;
    for (std::size_t word = 0; word < page_words; ++word) copy[word] = word_of(page.version, word);
    check(::write(pipe_[1], copy.data(), page_bytes) == page_bytes, "write");
    check(::read(pipe_[0], piece.words(i), page_bytes) == page_bytes, "read");
    compare(piece, {i, 1});
  }

  void fork() {
    if (generation == 2 || below(3) != 0) return;
    const pid_t child = ::fork();
    check(child >= 0, "fork");
    if (child == 0) {
      ++generation;
      versions_ += 1'000'000 * static_cast<Word>(generation);
      random_.discard(static_cast<unsigned long long>(generation));
      run(40);
      std::_Exit(0);
    }
    for (int i = 0; i < 20; ++i) step_without_fork();
    int status = 0;
    check(::waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0) {
      std::fprintf(stderr, "generation %d: a child ended with status %x\n", generation, static_cast<unsigned>(status));
      std::_Exit(1);
    }
  }
  void step_without_fork() {
    if (pieces_.empty()) return;
    Piece& piece = pieces_[below(pieces_.size())];
    switch (below(4)) {
      case 0: return protect(piece, some_part(piece), everything);
      case 1: return map_over(piece, some_part(piece), below(2) == 0 ? PROT_NONE : everything, 0);
      case 2: return discard(piece, some_part(piece));
      default: return write(piece, some_part(piece));
    }
  }

  std::mt19937_64 random_;
  std::size_t pages_max_;
  std::vector<Piece> pieces_;
  std::size_t pages_ = 0;  // mapped in all pieces
  Word versions_ = 0;
  std::array<int, 2> pipe_{};
};

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const auto number = [&](int i) { return std::strtoull(words[i], nullptr, 10); };
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  check(::sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");

  const std::size_t threads = number(2);
  const std::size_t pages = number(4) * (1 << 20) / page_bytes / threads;
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back([&, i] { Worker(number(1) + i, pages).run(static_cast<int>(number(3))); });
  }
  for (std::thread& each : all) each.join();
  std::puts("ok");
  return 0;
}
