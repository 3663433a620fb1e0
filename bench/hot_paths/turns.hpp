#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace tonari::bench::hot_paths {

/// Lets two ranks take turns without calling the library: what one rank measures was prepared by the other, so that it
/// does not wait. In a file that both ranks map.
class Turns {
 public:
  Turns(const std::string& path, int rank) : rank_(rank) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) throw std::runtime_error("cannot make " + path);
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    shared_ = static_cast<Shared*>(memory);  // zeros
  }
  Turns(Turns&&) = delete;
  ~Turns() { ::munmap(shared_, sizeof(Shared)); }

  /// Runs `work` on `rank` alone. Returns on both ranks when it has ended.
  template <class Work>
  void take(int rank, Work&& work) {
    if (rank == rank_) work();
    meet();
  }
  void meet() noexcept {
    const auto mine = shared_->met[index(rank_)].fetch_add(1) + 1;
    while (shared_->met[index(1 - rank_)].load() < mine) ::sched_yield();
  }
  /// Rank 0 announces that it begins what it will wait in; rank 1 waits for this, and a little longer.
  void announce() noexcept { shared_->announced.fetch_add(1); }
  void wait_for_announcement() noexcept {
    ++awaited_;
    while (shared_->announced.load() < awaited_) ::sched_yield();
    for (int i = 0; i < 2000; ++i) shared_->announced.load();
  }
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  struct Shared {
    std::array<std::atomic<unsigned>, 2> met;
    std::atomic<unsigned> announced;
  };
  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  Shared* shared_;
  int rank_;
  unsigned awaited_ = 0;
};

}  // namespace tonari::bench::hot_paths
