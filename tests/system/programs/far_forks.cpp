// A program that knows nothing of tonari: it forks, and parent and children change and free their memory in every way
// and fork again. Each compares its memory with a model. Usage:
//   far_forks torture SEED STEPS MIB    Prints "ok" and exits with 0, or says what is wrong.
//   far_forks daemon FILE               A child closes all its descriptors, outlives its parent, and writes "ok" to
//   FILE. far_forks waiting                   A child prints its parent's process id and its own, and waits for a
//   signal. far_forks refused                   No descriptor is left for a fork: the child touches memory that it has
//   not inherited. far_forks raw                       The child of a plain system call does so. far_forks user ID A
//   child takes that user id, and reads its memory.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Word = std::uint64_t;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t page_words = page_bytes / sizeof(Word);
constexpr int generations_max = 3;

int generation = 0;  // 0: the program; 1: its children

[[noreturn]] void wrong(const char* what, std::size_t place, Word found, Word expected) {
  std::fprintf(stderr, "generation %d, process %d: %s at %zu: %llx instead of %llx\n", generation, ::getpid(), what,
               place, static_cast<unsigned long long>(found), static_cast<unsigned long long>(expected));
  std::_Exit(1);
}

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "generation %d: %s: %s\n", generation, what, std::strerror(errno));
  std::_Exit(1);
}

Word word_of(Word version, std::size_t word) {
  return version == 0 ? 0 : (version * 0x9e3779b97f4a7c15ULL ^ word * 0xbf58476d1ce4e5b9ULL) | 1;
}

/// Large memory, and the version of each of its pages; 0: zeros.
struct Piece {
  Word* start = nullptr;
  std::vector<Word> versions;  // small: local memory
  bool is_mapped = false;      // by mmap; otherwise by malloc
  bool was_protected = false;
  bool is_split = false;  // by a child that mapped over a part: Linux merges no mappings that a fork copied

  [[nodiscard]] std::size_t pages() const { return versions.size(); }
  [[nodiscard]] std::size_t bytes() const { return versions.size() * page_bytes; }
  [[nodiscard]] Word* page(std::size_t number) const { return start + number * page_words; }
};

class Torture {
 public:
  Torture(Word seed, std::size_t pages) : random_(seed), pages_(pages) {
    for (int i = 0; i < 6; ++i) pieces_.push_back(make());
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::size_t at = below(pieces_.size());
      Piece& piece = pieces_[at];
      switch (below(20)) {
        case 0: replace(piece); break;
        case 1: resize(piece); break;
        case 2: discard(piece); break;
        case 3: map_over(piece); break;
        case 4: cut(piece); break;
        case 5: fork_child(steps - step); break;
        case 6: wait_for_some(); break;
        case 7: protect(piece); break;
        case 8:
        case 9:
        case 10:
        case 11: check_some(piece); break;
        default: write_some(piece);
      }
    }
    for (const Piece& each : pieces_) compare(each, 0, each.pages());
    while (!children_.empty()) wait_for_one();
  }

  [[nodiscard]] bool has_ended_well() const { return is_well_; }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  [[nodiscard]] std::size_t some_pages(std::size_t max) { return 1 + below(max); }

  Piece make() {
    Piece piece;
    piece.versions.resize(512 + below(pages_ / 6));
    piece.is_mapped = below(2) == 0;
    if (piece.is_mapped) {
      void* const start = ::mmap(nullptr, piece.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      check(start != MAP_FAILED, "mmap");
      piece.start = static_cast<Word*>(start);
    } else {
      piece.start = static_cast<Word*>(std::calloc(piece.pages(), page_bytes));
      check(piece.start != nullptr, "calloc");
    }
    return piece;
  }

  static void release(const Piece& piece) {
    if (!piece.is_mapped) return std::free(piece.start);
    check(::munmap(piece.start, piece.bytes()) == 0, "munmap");
  }
  void replace(Piece& piece) {
    release(piece);
    piece = make();
  }

  void resize(Piece& piece) {
    const std::size_t before = piece.pages();
    const std::size_t after = 512 + below(pages_ / 6);
    void* to = nullptr;
    if (piece.is_mapped) {
      to = ::mremap(piece.start, piece.bytes(), after * page_bytes, MREMAP_MAYMOVE);
      if (to == MAP_FAILED && piece.was_protected) return;                // it cannot be copied
      if (to == MAP_FAILED && piece.is_split && errno == EFAULT) return;  // the kernel moves one mapping at a time
      check(to != MAP_FAILED, "mremap");
    } else {
      to = std::realloc(piece.start, after * page_bytes);
      check(to != nullptr, "realloc");
    }
    piece.start = static_cast<Word*>(to);
    piece.versions.resize(after);
    // Pages that realloc has added have any contents.
    if (!piece.is_mapped && after > before) std::memset(piece.page(before), 0, (after - before) * page_bytes);
  }

  void discard(Piece& piece) {
    if (!piece.is_mapped) return;
    const std::size_t first = below(piece.pages());
    const std::size_t count = some_pages(std::min<std::size_t>(piece.pages() - first, 300));
    check(::madvise(piece.page(first), count * page_bytes, MADV_DONTNEED) == 0, "madvise");
    forget(piece, first, count);
  }
  void map_over(Piece& piece) {
    if (!piece.is_mapped) return;
    const std::size_t first = below(piece.pages());
    const std::size_t count = some_pages(std::min<std::size_t>(piece.pages() - first, 100));
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    void* const start = ::mmap(piece.page(first), count * page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    check(start == piece.page(first), "mmap over mapped memory");
    piece.is_split = piece.is_split || generation > 0;
    forget(piece, first, count);
  }
  static void forget(Piece& piece, std::size_t first, std::size_t count) {
    std::fill_n(piece.versions.begin() + static_cast<std::ptrdiff_t>(first), count, 0);
  }
  // Unmaps the end.
  void cut(Piece& piece) {
    if (!piece.is_mapped || piece.pages() < 600) return;
    const std::size_t rest = piece.pages() - below(80) - 1;
    check(::munmap(piece.page(rest), (piece.pages() - rest) * page_bytes) == 0, "munmap of a part");
    piece.versions.resize(rest);
  }
  void protect(Piece& piece) {
    if (!piece.is_mapped || below(3) != 0) return;
    piece.was_protected = true;
    const std::size_t page = below(piece.pages());
    check(::mprotect(piece.page(page), page_bytes, PROT_READ) == 0, "mprotect");
    compare(piece, page, 1);
    check(::mprotect(piece.page(page), page_bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
  }

  void write_some(Piece& piece) {
    const std::size_t first = below(piece.pages());
    const std::size_t count = some_pages(std::min<std::size_t>(piece.pages() - first, below(4) == 0 ? 700 : 8));
    for (std::size_t page = first; page < first + count; ++page) {
      piece.versions[page] = random_();
      for (std::size_t word = 0; word < page_words; ++word) {
        piece.page(page)[word] = word_of(piece.versions[page], word);
      }
    }
  }
  void check_some(const Piece& piece) {
    const std::size_t first = below(piece.pages());
    compare(piece, first, some_pages(std::min<std::size_t>(piece.pages() - first, below(4) == 0 ? 700 : 8)));
  }
  static void compare(const Piece& piece, std::size_t first, std::size_t count) {
    for (std::size_t page = first; page < first + count; ++page) {
      for (std::size_t word = 0; word < page_words; ++word) {
        const Word expected = word_of(piece.versions[page], word);
        const Word found = piece.page(page)[word];
        if (found != expected) wrong(piece.is_mapped ? "a mapped page" : "an allocated page", page, found, expected);
      }
    }
  }

  void fork_child(int steps) {
    if (generation == generations_max || children_.size() == 3) return;
    const Word seed = random_();
    const pid_t child = ::fork();
    check(child >= 0, "fork");
    if (child != 0) {
      children_.push_back(child);
      return;
    }
    ++generation;
    children_.clear();
    random_.seed(seed);
    for (const Piece& each : pieces_) {
      if (below(2) == 0) check_some(each);
    }
    run(static_cast<int>(below(static_cast<std::size_t>(steps / 2) + 1)));
    std::_Exit(is_well_ ? 0 : 1);
  }
  void wait_for_some() {
    if (!children_.empty()) wait_for_one();
  }
  void wait_for_one() {
    int status = 0;
    check(::waitpid(children_.back(), &status, 0) == children_.back(), "waitpid");
    children_.pop_back();
    if (status == 0) return;
    std::fprintf(stderr, "generation %d: a child ended with status 0x%x\n", generation, static_cast<unsigned>(status));
    is_well_ = false;
  }

  std::mt19937_64 random_;
  std::size_t pages_;
  std::vector<Piece> pieces_;
  std::vector<pid_t> children_;
  bool is_well_ = true;
};

/// Memory that a thread discards, and then writes in order, again and again. A child must find it as it was at one
/// moment.
class Writer {
 public:
  explicit Writer(std::size_t pages) : pages_(pages) {
    void* const start = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(start != MAP_FAILED, "mmap");
    words_ = static_cast<Word*>(start);
    thread_ = std::thread([this] { write(); });
  }
  void stop() {
    stops_ = true;
    thread_.join();
  }
  /// Called in a child. While a round is being written, there are first words of this round, then zeros. While the
  /// memory is being discarded, pages are zeros or of the last round.
  void check_as_child() const {
    const Word round = *words_;
    const Word last = words_[pages_ * page_words - 1];
    bool has_ended = false;  // this round's words
    for (std::size_t word = 0; word < pages_ * page_words; ++word) {
      const Word found = words_[word];
      const bool is_discarded = last != 0 || round == 0;  // or complete
      if (found == 0) has_ended = true;
      if (found != 0 && !is_discarded && (found != round || has_ended)) {
        wrong("memory that a thread writes", word, found, has_ended ? 0 : round);
      }
    }
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return pages_ * page_bytes; }
  void write() {
    for (Word round = 1; !stops_; ++round) {
      check(::madvise(words_, bytes(), MADV_DONTNEED) == 0, "madvise");
      for (std::size_t word = 0; word < pages_ * page_words; ++word) {
        reinterpret_cast<std::atomic<Word>*>(words_)[word].store(round, std::memory_order_relaxed);
      }
    }
  }

  std::size_t pages_;
  Word* words_ = nullptr;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

int torture(Word seed, int steps, std::size_t mib) {
  Writer writer((mib << 20) / page_bytes / 8);
  bool is_well = true;
  Torture all(seed, (mib << 20) / page_bytes);
  for (int round = 0; round < 8; ++round) {
    all.run(steps / 8);
    const pid_t child = ::fork();
    check(child >= 0, "fork");
    if (child == 0) {
      ++generation;
      writer.check_as_child();
      std::_Exit(0);
    }
    int status = 0;
    check(::waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0)
      std::fprintf(stderr, "a child of a program with threads: status 0x%x\n", static_cast<unsigned>(status));
    is_well = is_well && status == 0;
  }
  writer.stop();
  if (!is_well || !all.has_ended_well()) return 1;
  std::puts("ok");
  return 0;
}

/// 64 MiB, most of which will be absent.
class Memory {
 public:
  Memory() : words_(static_cast<Word*>(std::malloc(count * sizeof(Word)))) {
    check(words_ != nullptr, "malloc");
    for (std::size_t i = 0; i < count; ++i) words_[i] = word_of(7, i);
  }
  void compare() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (words_[i] != word_of(7, i)) wrong("a word", i, words_[i], word_of(7, i));
    }
  }
  void touch() const { static_cast<void>(*static_cast<volatile Word*>(words_ + count / 2)); }

 private:
  static constexpr std::size_t count = (64 << 20) / sizeof(Word);
  Word* words_;
};

int wait_for(pid_t child) {
  int status = 0;
  check(::waitpid(child, &status, 0) == child, "waitpid");
  std::printf("%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
  return 0;
}

int leave_daemon(const char* path) {
  const Memory memory;
  const pid_t parent = ::getpid();
  if (::fork() != 0) return 0;
  ::setsid();
  ::close_range(0, ~0U, 0);
  while (::getppid() == parent) ::sched_yield();
  memory.compare();
  std::FILE* const file = std::fopen(path, "w");
  check(file != nullptr && std::fputs("ok\n", file) >= 0 && std::fclose(file) == 0, "writing the file");
  return 0;
}

int leave_waiting() {
  const Memory memory;
  const pid_t child = ::fork();
  if (child == 0) {
    std::printf("%d %d\n", ::getppid(), ::getpid());
    std::fflush(stdout);
    for (;;) ::pause();
  }
  return wait_for(child);
}

int fork_refused() {
  const Memory memory;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const pid_t child = ::fork();
  if (child == 0) {
    memory.touch();
    std::_Exit(0);
  }
  return wait_for(child);
}

int fork_raw() {
  const Memory memory;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    memory.touch();
    std::_Exit(0);
  }
  return wait_for(child);
}

// Returns true if all threads have that user.
bool all_threads_are_of(uid_t user) {
  bool is_right = true;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      uid_t real = user;
      if (line.starts_with("Uid:")) is_right = is_right && std::istringstream(line.substr(4)) >> real && real == user;
    }
  }
  return is_right;
}

int fork_user(uid_t user) {
  const Memory memory;
  const pid_t child = ::fork();
  if (child == 0) {
    check(::setuid(user) == 0, "setuid");
    check(all_threads_are_of(user), "a thread has another user");
    memory.compare();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      memory.compare();
      std::_Exit(0);
    }
    int status = 0;
    check(::waitpid(grandchild, &status, 0) == grandchild, "waitpid");
    std::_Exit(status == 0 ? 0 : 1);
  }
  return wait_for(child);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count > 1 ? words[1] : "";
  if (mode == "torture" && count == 5) {
    return torture(std::strtoull(words[2], nullptr, 10), std::atoi(words[3]), std::strtoull(words[4], nullptr, 10));
  }
  if (mode == "daemon" && count == 3) return leave_daemon(words[2]);
  if (mode == "waiting") return leave_waiting();
  if (mode == "refused") return fork_refused();
  if (mode == "raw") return fork_raw();
  if (mode == "user" && count == 3) return fork_user(static_cast<uid_t>(std::atoi(words[2])));
  std::fputs("usage: see the beginning of far_forks.cpp\n", stderr);
  return 2;
}
