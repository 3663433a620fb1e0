#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::alltoall {

namespace {

const Measurement of_tonari("alltoall", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });

}  // namespace

}  // namespace tonari::bench::alltoall
