#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::outstanding {

namespace {

const Measurement of_tonari("outstanding", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });

}  // namespace

}  // namespace tonari::bench::outstanding
