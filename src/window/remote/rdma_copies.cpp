#include "window/remote/rdma_copies.hpp"

#include "fabric/pipeline.hpp"
#include "fabric/wait.hpp"
#include "window/local/checked_copy.hpp"
#include "window/window_runtime.hpp"

#include <algorithm>

namespace tonari::window {

using fabric::Landing;

namespace {

// The network accesses bulk memory, which is pinned. The program's memory may fault, so it is copied from and to bulk
// memory.
class KeyCopy {
  static constexpr std::size_t pieces_max = 16;
  struct Piece {
    Landing landing;
    std::span<std::byte> local;
    fabric::BulkPlace block;
  };

  auto ender() noexcept {
    return [this](Piece& piece) { end(piece); };
  }

 public:
  KeyCopy(WindowRuntime& runtime, const PartKey& key, Service service, bool in_program) noexcept
      : runtime_(runtime),
        wire_(*runtime.engine().by_key()),
        key_(key),
        is_pull_(service == Service::pull),
        in_program_(in_program) {}
  KeyCopy(KeyCopy&&) = delete;

  void start(std::uint64_t there, std::span<std::byte> local) noexcept {
    while (!local.empty() && status_ == Status::ok) {
      Piece& piece = under_way_.next(ender());
      const std::size_t bytes = std::min(local.size(), fabric::bulk_tail_bytes_max);
      start(piece, there, local.first(bytes));
      under_way_.begin();
      there += bytes;
      local = local.subspan(bytes);
    }
  }

  /// Waits until all pieces are complete.
  Status end() noexcept {
    under_way_.end_all(ender());
    if (is_pull_ || status_ != Status::ok) return status_;
    Landing flushed;
    wire_.flush(key_.owner(), flushed);
    wait(flushed);
    return flushed.status;
  }

 private:
  void start(Piece& piece, std::uint64_t there, std::span<std::byte> local) noexcept {
    Origin& client = runtime_.client();
    piece.block = client.allocate_or([this] { return under_way_.end_oldest(ender()); }, local.size());
    piece.local = local;
    const std::span block(client.requests().at(piece.block), local.size());
    if (is_pull_) return wire_.get(key_.owner(), key_.key(), there, block, piece.landing);
    piece.landing.status =
        copy_local(runtime_.engine().session(), in_program_, local.data(), block.data(), local.size(), false);
    if (piece.landing.status == Status::ok) wire_.put(key_.owner(), key_.key(), there, block, piece.landing);
  }

  void end(Piece& piece) noexcept {
    wait(piece.landing);
    Status status = piece.landing.status;
    if (is_pull_ && status == Status::ok) {
      status = copy_local(runtime_.engine().session(), in_program_, piece.local.data(),
                          runtime_.client().requests().at(piece.block), piece.local.size(), true);
    }
    runtime_.client().requests().give_back(piece.block);
    if (status_ == Status::ok) status_ = status;
  }

  void wait(const Landing& landing) noexcept {
    // Acquire: the status, and the data.
    fabric::wait_until(
        runtime_.engine(), [&landing] { return landing.done.load(std::memory_order_acquire); }, job::Wait::window,
        key_.owner());
  }

  WindowRuntime& runtime_;
  fabric::ucx::Wire& wire_;
  const PartKey& key_;
  const bool is_pull_;
  const bool in_program_;
  fabric::Pipeline<Piece, pieces_max> under_way_;
  Status status_ = Status::ok;
};

}  // namespace

Status copy_by_key(WindowRuntime& runtime, const PartKey& key, Service service, std::uint64_t offset,
                   std::span<std::byte> local, bool in_program) noexcept {
  KeyCopy copy(runtime, key, service, in_program);
  copy.start(key.address() + offset, local);
  return copy.end();
}

}  // namespace tonari::window
