#pragma once

#include "fft_memory.hpp"
#include "harness/buffers.hpp"
#include "harness/phases.hpp"
#include "harness/wire.hpp"
#include "matrix.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tonari::bench::splash_fft {

/// A way to move transposed data to its rows.
struct Way {
  enum class Kind : std::uint8_t { push, push_whole, pull, queue, all_to_all };
  std::string_view name;
  Kind kind;
  std::size_t bytes_max = SIZE_MAX;  ///< The size limit of a push.
};
inline constexpr std::array ways{
    Way{"push", Way::Kind::push}, Way{"push-256", Way::Kind::push, 256}, Way{"push-whole", Way::Kind::push_whole},
    Way{"pull", Way::Kind::pull}, Way{"queue", Way::Kind::queue},        Way{"all-to-all", Way::Kind::all_to_all},
};

/// The time of a rank in each phase of a transform, in s. Sent in this layout.
struct Phases {
  double compute = 0;
  double transfer = 0;
  double wait = 0;
};

// A part of the shared memory:
//
//   0         1 x matrix_bytes   2 x matrix_bytes
//   +---------+------------------+------------------+
//   | input   | first            | second           |
//   +---------+------------------+------------------+
//
// each with this rank's rows of a matrix. No matrix is the source and the target of one transposition, so a barrier
// after each is enough: a rank that passes it has read its entire source.
enum class Matrix : std::uint8_t { input, first, second };
inline constexpr std::size_t matrices = 3;

/// Transposes matrices in shared memory. A rank's block of `rows` x `rows` numbers for another rank becomes `rows`
/// sub-rows of that rank's rows.
template <CollectiveWire W, SharedMemory M>
class Transposition {
 public:
  Transposition(W& wire, M& memory, const Layout& layout)
      : wire_(wire),
        memory_(memory),
        layout_(layout),
        staging_(layout.part() * sizeof(Complex)),
        arrived_(layout.part() * sizeof(Complex)),
        whole_(layout.rows(), sub_row_bytes(), layout.pitch() * sizeof(Complex)) {
    for (const auto target : {Matrix::first, Matrix::second}) {
      std::vector<Push> pushes;
      for_each_sub_row([&](int peer, std::size_t row) {
        pushes.push_back({peer, offset(target, row, wire_.rank()), staged(row, peer)});
      });
      (target == Matrix::first ? to_first_ : to_second_).emplace(memory.batch(pushes));
    }
  }

  static std::size_t bytes(const Layout& layout) noexcept { return matrices * layout.part() * sizeof(Complex); }

  /// This rank's rows.
  [[nodiscard]] Complex* rows(Matrix matrix) noexcept {
    return reinterpret_cast<Complex*>(memory_.local().data()) + static_cast<std::size_t>(matrix) * layout_.part();
  }

  /// Transposes `from` into `to`. Collective.
  void run(const Way& way, Matrix from, Matrix to, Watch& watch, Phases& phases) {
    switch (way.kind) {
      case Way::Kind::pull: return pull(from, to, watch, phases);
      case Way::Kind::all_to_all: return exchange(from, to, watch, phases);
      default: return push(way, from, to, watch, phases);
    }
  }

  /// Operations that this rank has started.
  [[nodiscard]] std::uint64_t transfers() const noexcept { return transfers_; }

 private:
  void push(const Way& way, Matrix from, Matrix to, Watch& watch, Phases& phases) {
    for_each_peer([&](int peer) {
      copy_transposed(block(rows(from), peer), block(staging(), peer), layout_.rows(), layout_.rows());
    });
    transpose_own(from, to);
    watch.lap(phases.compute);

    if (way.kind == Way::Kind::queue) {
      memory_.post(to == Matrix::first ? *to_first_ : *to_second_);
      transfers_ += peers() * layout_.rows();
    } else if (way.kind == Way::Kind::push_whole) {
      const auto reach = (layout_.rows() - 1) * layout_.pitch() + layout_.rows();
      for_each_peer([&](int peer) {
        const std::span<const Complex> sub_rows(block(staging(), peer).start, reach);
        memory_.push_pieces(peer, offset(to, 0, wire_.rank()), std::as_bytes(sub_rows), whole_);
      });
      transfers_ += peers();
    } else {
      for_each_sub_row([&](int peer, std::size_t row) {
        auto left = staged(row, peer);
        for (auto place = offset(to, row, wire_.rank()); !left.empty();) {
          const auto piece = left.first(std::min(way.bytes_max, left.size()));
          memory_.push(peer, place, piece);
          place += piece.size();
          left = left.subspan(piece.size());
          ++transfers_;
        }
      });
    }
    memory_.settle();
    watch.lap(phases.transfer);

    memory_.barrier();
    watch.lap(phases.wait);
  }

  void pull(Matrix from, Matrix to, Watch& watch, Phases& phases) {
    if (from != Matrix::input) memory_.barrier();  // the input was written long before
    watch.lap(phases.wait);

    for_each_sub_row([&](int peer, std::size_t row) {
      const std::span sub_row(block(staging(), peer).start + row * layout_.pitch(), layout_.rows());
      memory_.pull(std::as_writable_bytes(sub_row), peer, offset(from, row, wire_.rank()));
    });
    memory_.settle();
    transfers_ += peers() * layout_.rows();
    watch.lap(phases.transfer);

    for_each_peer([&](int peer) {
      copy_transposed(block(staging(), peer), block(rows(to), peer), layout_.rows(), layout_.rows());
    });
    transpose_own(from, to);
    watch.lap(phases.compute);
  }

  /// Transposes by messages. Blocks are contiguous in both buffers.
  void exchange(Matrix from, Matrix to, Watch& watch, Phases& phases) {
    const auto side = layout_.rows();
    const auto packed = [&](const Memory& memory, int rank) {
      return Block{numbers(memory) + static_cast<std::size_t>(rank) * side * side, side};
    };
    for_each_peer([&](int peer) { copy_transposed(block(rows(from), peer), packed(staging_, peer), side, side); });
    transpose_own(from, to);
    watch.lap(phases.compute);

    const auto all = side * side * static_cast<std::size_t>(layout_.ranks) * sizeof(Complex);
    wire_.all_to_all(staging_.bytes().first(all), arrived_.bytes().first(all));
    transfers_ += peers();
    watch.lap(phases.transfer);

    for_each_peer([&](int peer) {
      const auto source = packed(arrived_, peer);
      const auto target = block(rows(to), peer);
      for (std::size_t row = 0; row < side; ++row) {
        std::copy_n(source.start + row * source.pitch, side, target.start + row * target.pitch);
      }
    });
    watch.lap(phases.compute);
  }

  void transpose_own(Matrix from, Matrix to) {
    copy_transposed(block(rows(from), wire_.rank()), block(rows(to), wire_.rank()), layout_.rows(), layout_.rows());
  }

  /// Visits the other ranks, beginning with the next, so that not all access the same rank at once.
  template <class Do>
  void for_each_peer(Do act) const {
    for (int step = 1; step < layout_.ranks; ++step) act((wire_.rank() + step) % layout_.ranks);
  }
  template <class Do>
  void for_each_sub_row(Do act) const {
    for_each_peer([&](int peer) {
      for (std::size_t row = 0; row < layout_.rows(); ++row) act(peer, row);
    });
  }
  [[nodiscard]] std::size_t peers() const noexcept { return static_cast<std::size_t>(layout_.ranks - 1); }

  [[nodiscard]] static Complex* numbers(const Memory& memory) noexcept {
    return reinterpret_cast<Complex*>(memory.bytes().data());
  }
  [[nodiscard]] Complex* staging() const noexcept { return numbers(staging_); }
  [[nodiscard]] std::size_t sub_row_bytes() const noexcept { return layout_.rows() * sizeof(Complex); }
  /// Returns the block of `rows` in the columns that become rows of `rank`.
  [[nodiscard]] Block block(Complex* rows, int rank) const noexcept {
    return {rows + layout_.first_row(rank), layout_.pitch()};
  }
  [[nodiscard]] std::span<const std::byte> staged(std::size_t row, int peer) const noexcept {
    return std::as_bytes(std::span(block(staging(), peer).start + row * layout_.pitch(), layout_.rows()));
  }
  /// Returns the offset of the columns of `rank` in a row of any rank's part.
  [[nodiscard]] std::size_t offset(Matrix matrix, std::size_t row, int rank) const noexcept {
    return (static_cast<std::size_t>(matrix) * layout_.part() + row * layout_.pitch() + layout_.first_row(rank)) *
           sizeof(Complex);
  }

  W& wire_;
  M& memory_;
  Layout layout_;
  Memory staging_;  // blocks to push, or pulled blocks, each in its columns; or packed blocks to send
  Memory arrived_;  // packed blocks from all ranks
  typename M::Pieces whole_;
  std::optional<typename M::Batch> to_first_;
  std::optional<typename M::Batch> to_second_;
  std::uint64_t transfers_ = 0;
};

}  // namespace tonari::bench::splash_fft
