// A program that knows nothing of tonari, whose data are static: zeros at first (.bss) and with first values (.data),
// in the program and in a library.
//
//   far_static                  computes with all of them; prints "ok"
//   far_static fork             so do a forked child, its own child, and one that executes a command
//   far_static calls            system calls read and write them, in the current folder
//   far_static advise           gives pages back to the kernel, and protects some

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "far_static.hpp"

namespace {

constexpr std::size_t count = 4 << 20;  // 32 MiB each

int small_before = 17;
std::array<std::uint64_t, count> with_values{3, 1, 4, 1, 5};
int small_after = 19;
std::array<std::uint64_t, count> zeros;
int small_zero;
std::array<char, (8 << 20) + 77> odd_bytes;
std::array<int*, 1 << 20> pointers{&small_before, &small_after};

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

std::uint64_t word(std::size_t i, std::uint64_t which) { return (i + 1) * 0x9e3779b97f4a7c15ULL ^ which; }

// A constructor runs before main(), and after the preload library's.
struct Early {
  Early() { zeros[12345] = 6; }
} early;

template <class Words>
void fill(Words& words, std::uint64_t which) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(i, which);
}

template <class Words>
void check_filled(const Words& words, std::uint64_t which) {
  for (std::size_t i = 0; i < words.size(); ++i) check(words[i] == word(i, which), "a word has changed");
}

void check_small() {
  check(small_before == 17 && small_after == 19 && small_zero == 0, "small variables");
  pointers[5] = &small_zero;
  check(*pointers[0] == 17 && pointers[1] == &small_after, "relocated pointers");
}

void check_first_values() {
  check(with_values[0] == 3 && with_values[4] == 5 && with_values[5] == 0 && with_values[count - 1] == 0, ".data");
  check(zeros[0] == 0 && zeros[12345] == 6 && zeros[count - 1] == 0, ".bss");
  check(library_values()[0] == 2 && library_values()[library_count - 1] == 7, "the library's .data");
  check(library_zeros()[0] == 0 && library_zeros()[777] == 8, "the library's .bss");
  check(library_exported[0] == 9 && library_exported[1] == 0, "an array of the library that the program uses itself");
  check_small();
}

void compute() {
  fill(zeros, 1);
  fill(with_values, 2);
  fill(library_values(), 3);
  fill(library_zeros(), 4);
  fill(library_exported, 5);
  std::memset(odd_bytes.data(), 'x', odd_bytes.size());
  for (int turn = 0; turn < 2; ++turn) {
    check_filled(zeros, 1);
    check_filled(with_values, 2);
    check_filled(library_values(), 3);
    check_filled(library_zeros(), 4);
    check_filled(library_exported, 5);
  }
  for (const char each : odd_bytes) check(each == 'x', "a byte has changed");
  check_small();
}

// So that the pages of other arrays are moved to a server.
void compute_elsewhere() {
  fill(library_values(), 3);
  fill(library_zeros(), 4);
  check_filled(library_values(), 3);
  check_filled(library_zeros(), 4);
}

int status_of(pid_t child) {
  int status = -1;
  check(::waitpid(child, &status, 0) == child, "waitpid");
  return status;
}

template <class Words>
void write_and_read(Words& words, std::uint64_t which) {
  const int file = ::open("static_words", O_CREAT | O_RDWR | O_TRUNC, 0600);
  check(file >= 0, "open");
  const auto bytes = static_cast<ssize_t>(sizeof words);
  check(::write(file, words.data(), sizeof words) == bytes, "write");
  std::memset(words.data(), 0, sizeof words);
  compute_elsewhere();
  check(::pread(file, words.data(), sizeof words, 0) == bytes, "pread");
  check_filled(words, which);
  ::close(file);
  ::unlink("static_words");
}

void advise() {
  auto* const start = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(zeros.data()) + 4095) / 4096 * 4096);
  check(::madvise(start + (4 << 20), 12 << 20, MADV_DONTNEED) == 0, "madvise");
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const at = reinterpret_cast<const char*>(&zeros[i]);
    if (at - start >= 4 << 20 && at - start < 16 << 20) {
      check(zeros[i] == 0, "a page that was given back is not zeros");
    } else if (at + 8 <= start + (4 << 20) || at >= start + (16 << 20)) {
      check(zeros[i] == word(i, 1), "a page that was not given back has changed");
    }
  }
  check(::mprotect(start + (20 << 20), 1 << 20, PROT_READ) == 0, "mprotect");
  compute_elsewhere();
  for (std::size_t i = (20 << 20) / 8 + 512; i < (21 << 20) / 8; ++i) check(zeros[i] == word(i, 1), "a protected page");
  check(::mprotect(start + (20 << 20), 1 << 20, PROT_READ | PROT_WRITE) == 0, "mprotect back");
  check(::mmap(start + (20 << 20), 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
            MAP_FAILED,
        "mmap over a part");
  check(start[20 << 20] == 0 && start[(22 << 20) - 1] == 0, "a part that was mapped anew is not zeros");
  check(::mlock(start + (24 << 20), 1 << 20) == 0 || ::geteuid() != 0, "mlock");
  compute_elsewhere();
}

// A child has all variables as they were at the fork, whatever its parent writes since, and may do with them what its
// parent may.
void fork_children() {
  check(std::system("exit 3") >> 8 == 3, "system");
  pid_t child = ::fork();
  if (child == 0) {
    check_filled(with_values, 2);
    check_filled(library_exported, 5);
    advise();
    if (::fork() == 0) {
      check_filled(with_values, 2);
      check_filled(library_exported, 5);
      std::_Exit(0);
    }
    int status = -1;
    check(::wait(&status) > 0 && status == 0, "a child of a child");
    check_small();
    std::_Exit(small_before);
  }
  fill(zeros, 6);
  fill(with_values, 7);
  fill(library_exported, 8);
  check_filled(zeros, 6);
  check_filled(with_values, 7);
  check(status_of(child) >> 8 == 17, "a child");
  child = ::fork();
  if (child == 0) {
    ::execlp("sh", "sh", "-c", "exit 5", nullptr);
    std::_Exit(1);
  }
  check(status_of(child) >> 8 == 5, "a child that executes a command");
}

}  // namespace

int main(int count_of_words, char** words) {
  const std::string_view what = count_of_words > 1 ? words[1] : "";
  check_first_values();
  compute();
  if (what == "fork") fork_children();
  if (what == "calls") {
    write_and_read(zeros, 1);
    write_and_read(with_values, 2);
  }
  if (what == "advise") advise();
  std::puts("ok");
}
