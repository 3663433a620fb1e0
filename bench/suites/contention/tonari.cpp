#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::contention {

namespace {

const Measurement of_tonari("contention", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });

}  // namespace

}  // namespace tonari::bench::contention
