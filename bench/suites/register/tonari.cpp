#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::registration {

namespace {

const Measurement of_tonari("register", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });

}  // namespace

}  // namespace tonari::bench::registration
