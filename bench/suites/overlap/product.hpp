#pragma once

#include "harness/phases.hpp"
#include "harness/wire.hpp"
#include "kernels/matrix.hpp"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tonari::bench::overlap {

inline constexpr int tag_block = 31;

enum class Send : std::uint8_t { buffered, blocking, when_posted, started, started_when_posted };
enum class Receive : std::uint8_t { blocking, started };

enum class Kernel : std::uint8_t { blas, plain };

/// One of the study's six ways to pass a block on.
struct Mode {
  std::string_view name;
  Send send;
  Receive receive;
};
inline constexpr std::array<Mode, 6> modes{{{"buffered/blocking", Send::buffered, Receive::blocking},
                                            {"blocking/started", Send::blocking, Receive::started},
                                            {"posted/started", Send::when_posted, Receive::started},
                                            {"started/blocking", Send::started, Receive::blocking},
                                            {"started/started", Send::started, Receive::started},
                                            {"started-posted/started", Send::started_when_posted, Receive::started}}};

/// The distribution of a product of order n: each rank has some rows of A and C, and `blocks` blocks of neighbouring
/// columns of B. Parts differ by at most one row or column.
struct Layout {
  int n;
  int blocks;  // per rank
  int ranks;

  [[nodiscard]] int first_row(int rank) const noexcept { return cut(rank, ranks); }
  [[nodiscard]] int rows(int rank) const noexcept { return first_row(rank + 1) - first_row(rank); }
  [[nodiscard]] int block(int rank, int page) const noexcept { return rank * blocks + page; }
  [[nodiscard]] int first_column(int block) const noexcept { return cut(block, ranks * blocks); }
  [[nodiscard]] int width(int block) const noexcept { return first_column(block + 1) - first_column(block); }
  [[nodiscard]] int width_max() const noexcept { return (n + ranks * blocks - 1) / (ranks * blocks); }

 private:
  [[nodiscard]] int cut(int part, int parts) const noexcept { return static_cast<int>(std::int64_t{n} * part / parts); }
};

/// This rank's part of C = A B, where A and B are the study's matrix: symmetric and orthogonal, so C is the identity.
template <PostedWire W>
class Product {
 public:
  Product(W& wire, const Layout& layout, Kernel kernel)
      : wire_(wire),
        layout_(layout),
        kernel_(kernel),
        a_(layout.n, layout.rows(wire.rank())),
        c_(layout.rows(wire.rank()), layout.n),
        passing_{Columns(layout.n, layout.width_max()), Columns(layout.n, layout.width_max())},
        copy_(passing_[0].first(layout.width_max()).size()) {
    const PaperMatrix paper(layout.n);
    for (int i = 0; i < a_.count(); ++i) paper.fill(a_, i, layout.first_row(wire.rank()) + i);
    for (int page = 0; page < layout.blocks; ++page) {
      const int block = layout.block(wire.rank(), page);
      auto& columns = own_.emplace_back(layout.n, layout.width(block));
      for (int i = 0; i < columns.count(); ++i) paper.fill(columns, i, layout.first_column(block) + i);
    }
  }

  /// Passes every block round all ranks, computing each part of C this many times.
  Times run(const Mode& mode, int computations) {
    times_ = {};
    Watch all;
    watch_ = Watch();
    for (int page = 0; page < layout_.blocks; ++page) {
      for (int step = 0; step < layout_.ranks; ++step) {
        const bool last = step + 1 == layout_.ranks;
        Columns& here = step == 0 ? own_[static_cast<std::size_t>(page)] : passing(step - 1);
        const int block = block_at(page, step);
        if (!last) issue(mode, here.first(layout_.width(block)), arriving(page, step));
        for (int i = 0; i < computations; ++i) multiply(here, block);
        watch_.lap(times_.compute);
        if (!last) complete(mode, arriving(page, step));
      }
    }
    all.lap(times_.all);
    return times_;
  }

  void clear() { std::ranges::fill(c_.first(c_.count()), 0.0); }

  /// Returns ||C - I|| / (n eps) of this rank's rows, in the infinity norm. LAPACK's tests of orthogonality (dort01)
  /// use a similar measure, and accept up to 30.
  [[nodiscard]] double residual() {
    double largest = 0;
    for (int row = 0; row < c_.rows(); ++row) {
      double sum = 0;
      for (int column = 0; column < layout_.n; ++column) {
        sum += std::fabs(*c_.at(row, column) - (column == layout_.first_row(wire_.rank()) + row ? 1 : 0));
      }
      if (!(sum <= largest)) largest = sum;  // keeps a NaN
    }
    const double eps = std::numeric_limits<double>::epsilon() / 2;  // named eps in LAPACK
    return largest / layout_.n / eps;
  }

 private:
  /// The current block at `step` of a page: a block starts at its owner and moves up one rank per step.
  [[nodiscard]] int block_at(int page, int step) const noexcept {
    return layout_.block((wire_.rank() - step + layout_.ranks) % layout_.ranks, page);
  }
  [[nodiscard]] Columns& passing(int step) noexcept { return passing_[static_cast<std::size_t>(step % 2)]; }
  /// Returns the memory for the block that arrives during `step`.
  [[nodiscard]] std::span<double> arriving(int page, int step) noexcept {
    return passing(step).first(layout_.width(block_at(page, step + 1)));
  }

  void issue(const Mode& mode, std::span<const double> block, std::span<double> next) {
    const int from = (wire_.rank() + layout_.ranks - 1) % layout_.ranks;
    if (mode.receive == Receive::started) {
      received_ = wire_.start_receive(std::as_writable_bytes(next), from, tag_block);
      watch_.lap(times_.wait);
    }
    send(mode.send, block);
    watch_.lap(times_.send);
  }

  void send(Send how, std::span<const double> block) {
    const int to = (wire_.rank() + 1) % layout_.ranks;
    const auto bytes = std::as_bytes(block);
    switch (how) {
      case Send::buffered: sent_ = wire_.start_send(copied(block), to, tag_block); break;
      case Send::blocking: wire_.send(bytes, to, tag_block); break;
      case Send::when_posted: wire_.send_when_posted(bytes, to, tag_block); break;
      case Send::started: sent_ = wire_.start_send(bytes, to, tag_block); break;
      case Send::started_when_posted: sent_ = wire_.start_send_when_posted(bytes, to, tag_block); break;
    }
  }

  /// Sends a copy, as the buffered send of every MPI does.
  std::span<const std::byte> copied(std::span<const double> block) {
    std::ranges::copy(block, copy_.begin());
    return std::as_bytes(std::span(copy_).first(block.size()));
  }

  void complete(const Mode& mode, std::span<double> next) {
    if (mode.receive == Receive::started) {
      wire_.wait(*received_);
      received_.reset();
    } else {
      wire_.receive(std::as_writable_bytes(next), (wire_.rank() + layout_.ranks - 1) % layout_.ranks, tag_block);
    }
    if (sent_) {
      wire_.wait(*sent_);
      sent_.reset();
    }
    watch_.lap(times_.wait);
  }

  /// Multiplies this rank's rows of A by a block of B. a_ has the rows as columns, since A is symmetric: inner products
  /// of neighbouring numbers, as in the study.
  void multiply(Columns& columns, int block) {
    const int width = layout_.width(block);
    if (width == 0 || c_.rows() == 0) return;
    if (kernel_ == Kernel::plain) {
      for (int column = 0; column < width; ++column) {
        double* const out = c_.at(0, layout_.first_column(block) + column);
        for (int row = 0; row < c_.rows(); ++row) {
          out[row] = cblas_ddot(layout_.n, a_.at(0, row), 1, columns.at(0, column), 1);
        }
      }
      return;
    }
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, c_.rows(), width, layout_.n, 1, a_.at(0, 0), a_.stride(),
                columns.at(0, 0), columns.stride(), 0, c_.at(0, layout_.first_column(block)), c_.stride());
  }

  W& wire_;
  Layout layout_;
  Kernel kernel_;
  Columns a_;
  Columns c_;
  std::vector<Columns> own_;        // of B
  std::array<Columns, 2> passing_;  // the current block and the arriving one, if another rank owns them
  std::vector<double> copy_;
  std::optional<typename W::Request> sent_;
  std::optional<typename W::Request> received_;
  Watch watch_;
  Times times_;
};

}  // namespace tonari::bench::overlap
