// A program that knows nothing of tonari, and loads a library with large static arrays.
//
//   far_libraries SEED LIBRARY          by one of several threads; all of them then use it; prints "ok"
//   far_libraries SEED LIBRARY alone    while it has one thread
//
// With FAR_PLUGIN_THREAD in the environment, a constructor of the library starts a thread that changes the arrays from
// then on.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "far_libraries.hpp"

namespace {

std::uint64_t seed = 0;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

std::uint64_t word(std::size_t i, std::uint64_t which) { return (i + seed) * 0x9e3779b97f4a7c15ULL ^ which; }

struct Loaded {
  void* handle;
  Plugin plugin;
};

Loaded load(const char* path) {
  void* const handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  check(handle != nullptr, "dlopen");
  check(::dlerror() == nullptr, "dlerror after dlopen");
  void* const symbol = ::dlsym(handle, "far_plugin");
  check(symbol != nullptr, "dlsym");
  return {handle, reinterpret_cast<Plugin (*)()>(symbol)()};
}

// The words that no thread of the library changes.
bool is_mine(std::size_t i) { return i % (3 * plugin_stride) >= plugin_stride; }

void check_first_values(const Plugin& plugin) {
  const auto& zeros = *plugin.zeros;
  const auto& values = *plugin.values;
  check(zeros[100] == 6, "a word that a constructor has set");
  for (std::size_t i = 0; i < plugin_zeros; ++i) check(!is_mine(i) || zeros[i] == 0, ".bss");
  for (std::size_t i = 2; i + 1 < plugin_values; ++i) check(values[i] == 0, ".data");
  check(values[0] == 3 && values[1] == 1 && values.back() == 9, "first values");
}

template <class Words>
void fill(Words& words, std::uint64_t which, std::size_t first, std::size_t step) {
  for (std::size_t i = first; i < words.size(); i += step) {
    if (is_mine(i)) words[i] = word(i, which);
  }
}

template <class Words>
void check_filled(const Words& words, std::uint64_t which, std::size_t first = 0, std::size_t step = 1) {
  for (std::size_t i = first; i < words.size(); i += step) {
    check(!is_mine(i) || words[i] == word(i, which), "a word has changed");
  }
}

void compute(const Plugin& plugin, std::uint64_t which, std::size_t first, std::size_t step) {
  fill(*plugin.zeros, which, first, step);
  fill(*plugin.values, ~which, first, step);
  check_filled(*plugin.zeros, which, first, step);
  check_filled(*plugin.values, ~which, first, step);
}

void call(const Plugin& plugin, std::uint64_t which) {
  const std::string path = "far_words_" + std::to_string(::getpid());
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
  check(file >= 0, "open");
  std::uint64_t* const start = plugin.zeros->data() + plugin_stride;  // two pages of three, from here
  constexpr std::size_t bytes = 2 * plugin_stride * sizeof(std::uint64_t);
  for (std::size_t i = 0; i + 3 * plugin_stride <= plugin_zeros; i += 30 * plugin_stride) {
    check(::pwrite(file, start + i, bytes, 0) == ssize_t{bytes}, "pwrite");
    std::memset(start + i, 0, bytes);
    check(::pread(file, start + i, bytes, 0) == ssize_t{bytes}, "pread");
  }
  ::close(file);
  ::unlink(path.c_str());
  check_filled(*plugin.zeros, which);
}

// A child finds the words as they were, whatever its parent writes meanwhile.
void fork_child(const Plugin& plugin, std::uint64_t which) {
  const pid_t child = ::fork();
  if (child == 0) {
    check_filled(*plugin.zeros, which);
    check_filled(*plugin.values, ~which);
    std::_Exit(7);
  }
  fill(*plugin.zeros, which + 1, 0, 1);
  fill(*plugin.values, ~(which + 1), 0, 1);
  int status = 0;
  check(::waitpid(child, &status, 0) == child && status >> 8 == 7, "a child");
}

Loaded load_by_one_of(std::size_t threads, const char* path) {
  std::promise<Loaded> promise;
  const std::shared_future<Loaded> loaded = promise.get_future().share();
  std::latch all_begin(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::jthread> running;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      all_begin.arrive_and_wait();
      if (thread == 0) {
        const Loaded found = load(path);
        check_first_values(found.plugin);
        promise.set_value(found);
      } else {
        (void)load(path);  // at the same time
      }
      compute(loaded.get().plugin, 1, thread, threads);
    });
  }
  running.clear();
  return loaded.get();
}

void stop_thread(const Plugin& plugin) {
  while (*plugin.rounds == 0) std::this_thread::yield();
  plugin.stop();
  const std::uint64_t rounds = *plugin.rounds;
  for (std::size_t i = 0; i < plugin_zeros; i += 3 * plugin_stride) {
    check((*plugin.zeros)[i] == rounds, "a word that the library's own thread has counted up");
  }
}

}  // namespace

int main(int count, char** words) {
  check(count >= 3, "arguments");
  seed = std::strtoull(words[1], nullptr, 10);
  const char* const path = words[2];
  const bool is_alone = count > 3 && std::string_view(words[3]) == "alone";
  const Loaded loaded = is_alone ? load(path) : load_by_one_of(4, path);
  const Plugin& plugin = loaded.plugin;
  if (is_alone) {
    check_first_values(plugin);
    compute(plugin, 1, 0, 1);
  }
  call(plugin, 1);
  fork_child(plugin, 1);
  if (std::getenv("FAR_PLUGIN_THREAD") != nullptr) stop_thread(plugin);

  check(::dlclose(loaded.handle) == 0, "dlclose");
  if (is_alone) check(::dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr, "a library with far memory stays loaded");
  const Loaded again = load(path);
  check_filled(*again.plugin.zeros, 2);
  check_filled(*again.plugin.values, ~std::uint64_t{2});
  std::puts("ok");
}
