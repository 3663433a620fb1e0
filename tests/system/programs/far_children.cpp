// A program that knows nothing of tonari, and its forked children: each has large memory of its own, and looks at its
// parent's.
//
//   far_children tree DEPTH MIB    each process forks two, DEPTH times; prints "ok"
//   far_children left MIB          the first process ends and leaves a child, which then looks at its memory: "left ok"
//   far_children waiting MIB       the same, but the child says "ready", and waits until its standard input ends

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "process %d: %s\n", ::getpid(), what);
  std::_Exit(1);
}

/// Large memory that is full of numbers only this process writes.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : words_(static_cast<std::uint64_t*>(std::malloc(bytes)), bytes / 8) {
    if (words_.data() == nullptr) wrong("malloc");
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = word(i);
  }
  void check() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != word(i)) wrong("memory has changed");
    }
  }
  void free() const { std::free(words_.data()); }

 private:
  [[nodiscard]] std::uint64_t word(std::size_t i) const {
    return (i + owner_) * 0x9e3779b97f4a7c15ULL ^ reinterpret_cast<std::uintptr_t>(words_.data());
  }
  std::uint64_t owner_ = static_cast<std::uint64_t>(::getpid()) << 32;
  std::span<std::uint64_t> words_;
};

void wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) wrong("a child has failed");
}

// Several threads are the first to ask.
void check_in_threads(std::size_t bytes) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([bytes] {
      const Memory own(bytes);
      own.check();
      own.free();
    });
  }
}

void grow(int depth, std::size_t bytes) {
  check_in_threads(bytes / 4);
  const Memory own(bytes);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::array<pid_t, 2> children{};
  for (pid_t& child : children) {
    if (depth == 0) break;
    child = ::fork();
    if (child != 0) continue;
    own.check();  // the parent's: inherited
    if (::mprotect(mapped, bytes, PROT_READ) != 0) wrong("mprotect of the parent's");
    if (::munmap(mapped, bytes) != 0) wrong("munmap of the parent's");
    own.free();
    grow(depth - 1, bytes);
    std::_Exit(0);
  }
  own.check();
  for (const pid_t child : children) {
    if (child != 0) wait_for(child);
  }
  own.check();
  own.free();
  if (::munmap(mapped, bytes) != 0) wrong("munmap");
}

void leave(std::size_t bytes, bool waits) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) wrong("pipe");
  const Memory parents(bytes);
  char letter = 0;
  const pid_t child = ::fork();
  if (child < 0) wrong("fork");
  if (child != 0) {
    ::close(ends[1]);
    (void)!::read(ends[0], &letter, 1);  // the child has its memory
    std::_Exit(0);
  }
  ::close(ends[0]);
  const pid_t parent = ::getppid();
  parents.check();
  const Memory own(bytes);
  if (waits) {
    (void)!::write(STDOUT_FILENO, "ready\n", 6);
    (void)!::read(STDIN_FILENO, &letter, 1);
  }
  ::close(ends[1]);
  while (::getppid() == parent) std::this_thread::yield();
  own.check();
  parents.check();
  std::puts("left ok");
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  const auto number = [&](int place) { return static_cast<std::size_t>(place < count ? std::atoi(words[place]) : 0); };
  if (what == "tree") {
    grow(static_cast<int>(number(2)), number(3) << 20);
    std::puts("ok");
  } else {
    leave(number(2) << 20, what == "waiting");
  }
}
