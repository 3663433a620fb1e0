#pragma once

#include "harness/worker.hpp"
#include "wires/tonari_one_sided.hpp"

namespace tonari::bench {

/// Joins the job, calls `measure`, and writes the first and last line of the results.
void measure_tonari(const Options& options, void (*measure)(TonariOneSidedWire&, const Options&, Output&));

}  // namespace tonari::bench
