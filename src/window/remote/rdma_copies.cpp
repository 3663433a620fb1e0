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
template <Direction D>
class KeyCopy {
  using Local = std::span<typename D::Local>;
  static constexpr std::size_t pieces_max = 16;
  struct Piece {
    Landing landing;
    Local local;
    fabric::BulkPlace block;
  };

  auto ender() noexcept {
    return [this](Piece& piece) { end(piece); };
  }

 public:
  KeyCopy(WindowRuntime& runtime, const PartKey& key, bool in_program) noexcept
      : runtime_(runtime), wire_(*runtime.engine().by_key()), key_(key), in_program_(in_program) {}
  KeyCopy(KeyCopy&&) = delete;

  void start(std::uint64_t there, Local local) noexcept {
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
    if (is_pull<D> || status_ != Status::ok) return status_;
    Landing flushed;
    wire_.flush(key_.owner(), flushed);
    wait(flushed);
    return flushed.status;
  }

 private:
  void start(Piece& piece, std::uint64_t there, Local local) noexcept {
    Origin& origin = runtime_.origin();
    piece.block = origin.allocate_or([this] { return under_way_.end_oldest(ender()); }, local.size());
    piece.local = local;
    const std::span block(origin.requests().at(piece.block), local.size());
    if constexpr (is_pull<D>) {
      wire_.get(key_.owner(), key_.key(), there, block, piece.landing);
    } else {
      piece.landing.status = load_local(runtime_.engine().session(), in_program_, block, local.data());
      if (piece.landing.status == Status::ok) wire_.put(key_.owner(), key_.key(), there, block, piece.landing);
    }
  }

  void end(Piece& piece) noexcept {
    wait(piece.landing);
    Status status = piece.landing.status;
    if constexpr (is_pull<D>) {
      const std::span block(runtime_.origin().requests().at(piece.block), piece.local.size());
      if (status == Status::ok) {
        status = store_local(runtime_.engine().session(), in_program_, piece.local.data(), block);
      }
    }
    runtime_.origin().requests().give_back(piece.block);
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
  const bool in_program_;
  fabric::Pipeline<Piece, pieces_max> under_way_;
  Status status_ = Status::ok;
};

}  // namespace

template <Direction D>
Status copy_by_key(WindowRuntime& runtime, const PartKey& key, std::uint64_t offset, std::span<typename D::Local> local,
                   bool in_program) noexcept {
  KeyCopy<D> copy(runtime, key, in_program);
  copy.start(key.address() + offset, local);
  return copy.end();
}

template Status copy_by_key<Pull>(WindowRuntime&, const PartKey&, std::uint64_t, std::span<std::byte>, bool) noexcept;
template Status copy_by_key<Push>(WindowRuntime&, const PartKey&, std::uint64_t, std::span<const std::byte>,
                                  bool) noexcept;

}  // namespace tonari::window
