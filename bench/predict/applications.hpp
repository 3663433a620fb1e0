#pragma once

#include "predict/parameters.hpp"
#include "predict/programs.hpp"
#include "predict/simulation.hpp"

namespace tonari::bench::predict {

/// The order of the matrix, and the width of the panels that are dealt to the ranks.
struct LuSize {
  int order = 6000;
  int block = 32;

  [[nodiscard]] int panels() const noexcept { return (order + block - 1) / block; }
  [[nodiscard]] double operations() const noexcept { return 2.0 / 3.0 * order * order * order; }
};

/// Predicts one factorisation of `tonari bench lu` in its mode `started`: the owner of the next panel updates and
/// factors it first, and the ranks update the rest while it is broadcast. A rank computes at `lu_gflops`. Throws
/// SetupError without that rate, and if there are more ranks than panels.
Outcome predict_lu(const LuSize& size, const Shape& shape, const Parameters& parameters);

/// Size M of Himeno's benchmark. Inner planes are dealt to the ranks.
struct HimenoSize {
  int planes = 128;
  int rows = 128;
  int columns = 256;

  [[nodiscard]] int inner_planes() const noexcept { return planes - 2; }
  [[nodiscard]] double operations_per_plane() const noexcept { return 34.0 * (rows - 2) * (columns - 2); }
  [[nodiscard]] std::size_t plane_bytes() const noexcept {
    return sizeof(float) * static_cast<std::size_t>(rows + 1) * static_cast<std::size_t>(columns + 1);
  }
};

/// Predicts one step of `tonari bench himeno` with messages: neighbours exchange planes while they copy others. The
/// result counts the messages of one step. Throws SetupError as predict_lu(), and if there are more ranks than planes.
Outcome predict_himeno(const HimenoSize& size, const Shape& shape, const Parameters& parameters);

}  // namespace tonari::bench::predict
