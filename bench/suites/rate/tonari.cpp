#include "measure.hpp"
#include "occupancy.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::rate {

namespace {

const Measurement of_tonari("rate", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });
const Measurement of_occupancy("occupancy", "tonari", [](const Options& options) {
  measure_tonari(options, occupancy::run<TonariOneSidedWire>);
});

}  // namespace

}  // namespace tonari::bench::rate
