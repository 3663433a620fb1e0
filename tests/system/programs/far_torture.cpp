// A program that knows nothing of tonari: threads write and read large memory in every way, and compare it
// with the expected content. Usage: far_torture SEED THREADS ROUNDS MIB [wait]. Prints "ok" and exits with 0, or says
// what is wrong. With "wait": prints "ready" once all is written, goes on until its standard input ends, and looks at
// all of it again.

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t cell_bytes = 64;
constexpr std::size_t grown_max = 16 * (1 << 20) / cell_bytes;

[[noreturn]] void wrong(const char* what, std::size_t place, unsigned long long found, unsigned long long expected) {
  std::fprintf(stderr, "%s at %zu: %llu instead of %llu\n", what, place, found, expected);
  std::_Exit(1);
}

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

// Returns the expected content of a word: zero where nothing has been written.
std::uint64_t word_of(std::size_t cell, std::uint32_t version, std::size_t word) {
  if (version == 0) return 0;
  std::uint64_t x = (cell * 8 + word) * 0x9e3779b97f4a7c15ULL ^ version * 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 29;
  return x * 0x94d049bb133111ebULL | 1;
}

/// Large memory, cell by cell, and how often each has been written. The counts are in a shared mapping, which is
/// local.
class Cells {
 public:
  explicit Cells(std::size_t count)
      : count_(count),
        words_(static_cast<std::uint64_t*>(std::malloc(count * cell_bytes))),
        versions_(static_cast<std::uint32_t*>(
            ::mmap(nullptr, room_bytes(count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    check(words_ != nullptr && versions_ != MAP_FAILED, "memory");
    std::memset(static_cast<void*>(words_), 0, count * cell_bytes);
  }
  Cells(Cells&&) = delete;
  ~Cells() {
    std::free(words_);
    ::munmap(versions_, room_bytes(count_));
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(words_); }
  void write(std::size_t cell) {
    const std::uint32_t version = ++versions_[cell];
    for (std::size_t word = 0; word < 8; ++word) words_[cell * 8 + word] = word_of(cell, version, word);
  }
  void compare(std::size_t cell) const {
    for (std::size_t word = 0; word < 8; ++word) {
      const std::uint64_t expected = word_of(cell, versions_[cell], word);
      if (words_[cell * 8 + word] != expected) wrong("cell", cell, words_[cell * 8 + word], expected);
    }
  }
  void compare_all() const {
    for (std::size_t cell = 0; cell < count_; ++cell) compare(cell);
  }
  /// Whole pages: they are zeros now.
  void give_back(std::size_t first, std::size_t cells) {
    check(::madvise(bytes() + first * cell_bytes, cells * cell_bytes, MADV_DONTNEED) == 0, "madvise");
    std::fill_n(versions_ + first, cells, 0);
  }
  /// Twice as many; the new ones are written.
  void grow() {
    const std::size_t before = count_;
    check(before * 2 <= grown_max, "growing too far");
    count_ *= 2;
    words_ = static_cast<std::uint64_t*>(std::realloc(words_, count_ * cell_bytes));
    check(words_ != nullptr, "growing");
    for (std::size_t cell = before; cell < count_; ++cell) {
      versions_[cell] = 0;
      write(cell);
    }
  }
  [[nodiscard]] std::uint32_t& version(std::size_t cell) { return versions_[cell]; }

 private:
  static std::size_t room_bytes(std::size_t count) { return std::max(count, grown_max) * sizeof(std::uint32_t); }

  std::size_t count_;
  std::uint64_t* words_;
  std::uint32_t* versions_;
};

/// One thread: its share of the common cells (every N-th), and memory of its own for operations on whole pages.
class Worker {
 public:
  Worker(Cells& shared, unsigned number, unsigned threads, unsigned seed)
      : shared_(shared), own_(1 << 15), number_(number), threads_(threads), random_(seed + number) {
    check(::pipe(pipe_.data()) == 0, "pipe");
  }
  Worker(Worker&&) = delete;
  ~Worker() {
    for (const int end : pipe_) ::close(end);
  }

  void round() {
    switch (random_() % 16) {
      case 0: return scan();
      case 1: return give_back();
      case 2: return through_the_kernel();
      case 3: return begin_a_process();
      case 4: return grow();
      default: return here_and_there();
    }
  }

 private:
  [[nodiscard]] std::size_t some_cell() {
    const std::size_t mine = shared_.count() / threads_;
    return random_() % mine * threads_ + number_;
  }

  void here_and_there() {
    for (int i = 0; i < 200; ++i) {
      const std::size_t cell = some_cell();
      shared_.compare(cell);
      if (random_() % 2 == 0) shared_.write(cell);
    }
  }

  void scan() {
    const std::size_t cells = shared_.count() / 16;
    const std::size_t first = random_() % (shared_.count() - cells) / threads_ * threads_ + number_;
    const bool writes = random_() % 2 == 0;
    for (std::size_t cell = first; cell < first + cells && cell < shared_.count(); cell += threads_) {
      shared_.compare(cell);
      if (writes) shared_.write(cell);
    }
  }

  void give_back() {
    constexpr std::size_t cells_a_page = page_bytes / cell_bytes;
    // malloc gives no page's start: the first page that is whole.
    const auto address = reinterpret_cast<std::uintptr_t>(own_.bytes());
    if (address % page_bytes != 0) return;
    const std::size_t pages = own_.count() / cells_a_page;
    const std::size_t first = random_() % pages;
    const std::size_t count = 1 + random_() % std::min<std::size_t>(pages - first, 300);
    own_.give_back(first * cells_a_page, count * cells_a_page);
    for (int i = 0; i < 100; ++i) {
      const std::size_t cell = (first + random_() % count) * cells_a_page + random_() % cells_a_page;
      own_.compare(cell);
      own_.write(cell);
    }
    own_.compare_all();
  }

  // write(2) and read(2) of memory that may be absent.
  void through_the_kernel() {
    const std::size_t cells = 1 + random_() % (65536 / cell_bytes);
    const std::size_t from = random_() % (own_.count() - cells);
    const std::size_t to = random_() % (own_.count() - cells);
    std::vector<std::byte> copy(cells * cell_bytes);
    check(::write(pipe_[1], own_.bytes() + from * cell_bytes, copy.size()) == static_cast<ssize_t>(copy.size()),
          "write");
    check(::read(pipe_[0], copy.data(), copy.size()) == static_cast<ssize_t>(copy.size()), "read");
    if (std::memcmp(copy.data(), own_.bytes() + from * cell_bytes, copy.size()) != 0) wrong("write(2)", from, 0, 1);

    for (std::size_t cell = to; cell < to + cells; ++cell) {
      const std::uint32_t version = ++own_.version(cell);
      for (std::size_t word = 0; word < 8; ++word) {
        const std::uint64_t value = word_of(cell, version, word);
        std::memcpy(copy.data() + (cell - to) * cell_bytes + word * 8, &value, sizeof value);
      }
    }
    check(::write(pipe_[1], copy.data(), copy.size()) == static_cast<ssize_t>(copy.size()), "write");
    check(::read(pipe_[0], own_.bytes() + to * cell_bytes, copy.size()) == static_cast<ssize_t>(copy.size()), "read");
    for (std::size_t cell = to; cell < to + cells; ++cell) own_.compare(cell);
  }

  void begin_a_process() {
    pid_t child = 0;
    if (random_() % 2 == 0) {
      child = ::fork();
      if (child == 0) ::_exit(7);
    } else {
      std::string name = "/bin/sh";
      std::string option = "-c";
      std::string text = "exit 7";
      std::array<char*, 4> words{name.data(), option.data(), text.data(), nullptr};
      check(::posix_spawn(&child, name.c_str(), nullptr, nullptr, words.data(), ::environ) == 0, "posix_spawn");
    }
    int status = 0;
    check(child > 0 && ::waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "a child");
  }

  void grow() {
    if (own_.count() * cell_bytes < 8 << 20) own_.grow();
    own_.compare_all();
  }

  Cells& shared_;
  Cells own_;
  unsigned number_;
  unsigned threads_;
  std::mt19937 random_;
  std::array<int, 2> pipe_{};
};

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(words[i], nullptr, 10)); };
  const unsigned seed = number(1);
  const unsigned threads = number(2);
  const unsigned rounds = number(3);
  const bool waits = count > 5 && std::string_view(words[5]) == "wait";
  Cells shared(std::size_t{number(4)} * (1 << 20) / cell_bytes);
  for (std::size_t cell = 0; cell < shared.count(); ++cell) shared.write(cell);
  if (waits) {
    std::puts("ready");
    std::fflush(stdout);
  }

  std::atomic<bool> goes_on{true};
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      Worker worker(shared, i, threads, seed);
      for (unsigned round = 0; waits ? goes_on.load() : round < rounds; ++round) worker.round();
    });
  }
  if (waits) {
    while (std::getchar() != EOF) {
    }
    goes_on.store(false);
  }
  for (std::thread& each : all) each.join();
  shared.compare_all();
  std::puts("ok");
  return 0;
}
