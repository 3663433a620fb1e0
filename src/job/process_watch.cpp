#include "job/process_watch.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "job/ending.hpp"
#include "job/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <utility>

namespace tonari::job {

ProcessWatch::ProcessWatch(std::shared_ptr<Arena> arena, std::vector<Neighbour> neighbours)
    : arena_(std::move(arena)), neighbours_(std::move(neighbours)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_system_error("eventfd");
  const AllSignalsBlocked none_for_the_new_thread;
  thread_ = start_thread("the thread that watches for deaths", [this] { watch(); });
}

ProcessWatch::~ProcessWatch() {
  ::eventfd_write(stop_.number(), 1);
  thread_.join();
}

void ProcessWatch::watch() noexcept {
  ::pthread_setname_np(::pthread_self(), "tonari-deaths");
  std::vector<pollfd> watched;
  for (const Neighbour& neighbour : neighbours_) {
    watched.push_back({.fd = neighbour.process.number(), .events = POLLIN, .revents = 0});
  }
  watched.push_back({.fd = stop_.number(), .events = POLLIN, .revents = 0});
  while (watched.back().revents == 0) {
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;  // EINTR, because of a debugger
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      if (watched[i].revents == 0) continue;
      record(neighbours_[i]);
      watched[i] = {.fd = -1, .events = 0, .revents = 0};
    }
  }
}

void ProcessWatch::record(const Neighbour& ended) noexcept {
  const Phase phase = arena_->block(ended.rank).phase.load(std::memory_order_acquire);
  if (phase >= Phase::left || (phase == Phase::leaving && arena_->all_leave())) return;
  const Ending ending = ending_of(ended.process, ended.pid);
  arena_->mark_dead(ended.rank, ending.signal, ending.status);
}

}  // namespace tonari::job
