#include "window/remote/rdma_put.hpp"

#include "fabric/wait.hpp"
#include "window/local/atomic_words.hpp"
#include "window/window_runtime.hpp"

#include <atomic>
#include <utility>

namespace tonari::window {

Put::~Put() {
  fabric::wait_until(
      state_->runtime().engine(), [this] { return has_landed(); }, job::Wait::window, -1);
  (void)end();
}

bool Put::open() noexcept {
  WindowRuntime& runtime = state_->runtime();
  bool all = true;
  for (int rank = 0; rank < state_->group().size(); ++rank) {
    if (!runtime.engine().is_remote(rank)) continue;
    PartKey& key = state_->key_of(rank);
    const bool is_here = key.use(runtime, rank, state_->number());
    if (is_here) key.leave(runtime);
    all = all && is_here;
  }
  return all;
}

void Put::start(int rank) noexcept {
  WindowRuntime& runtime = state_->runtime();
  const auto own = state_->local();
  if (!runtime.engine().is_remote(rank)) {
    std::byte* const there = state_->direct({state_->number(), JobRank{rank}, 0}, own.size());
    status_ = there != nullptr ? Status::ok : Status::peer_gone;
    if (there != nullptr) copy_bytes(there, own.data(), own.size());
    return;
  }
  PartKey& key = state_->key_of(rank);
  status_ = Status::peer_gone;
  if (!key.use_here(runtime)) return;
  key_ = &key;
  fabric::ucx::Wire& wire = *runtime.engine().by_key();
  wire.put(rank, key.key(), key.address(), own, put_, runtime.given_keys().memory_of(state_->number()));
  wire.flush(rank, flushed_);
}

// Acquire: the statuses.
bool Put::has_landed() const noexcept {
  return put_.done.load(std::memory_order_acquire) && flushed_.done.load(std::memory_order_acquire);
}

Status Put::end() noexcept {
  if (key_ == nullptr) return status_;
  if (!has_landed()) return Status::again;
  std::exchange(key_, nullptr)->leave(state_->runtime());
  status_ = put_.status != Status::ok ? put_.status : flushed_.status;
  return status_;
}

}  // namespace tonari::window
