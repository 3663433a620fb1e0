#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::broadcast {

namespace {

const Measurement of_tonari("broadcast", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });

}  // namespace

}  // namespace tonari::bench::broadcast
