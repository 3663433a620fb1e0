#include "measure.hpp"

#include "search.hpp"

#include "harness/registry.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::match {

namespace {

const Measurement of_tonari("match", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });
const Measurement of_heads("match", "lhs", run_search<Heads64>);
const Measurement of_longer_heads("match", "lhs-128", run_search<Heads128>);
const Measurement of_cut_messages("match", "lhs-cut", run_search<HeadsCut>);
const Measurement of_cells("match", "alpu", run_search<Cells>);
const Measurement of_common_buffer("match", "no-lhs", run_search<CommonBuffer>);

}  // namespace

}  // namespace tonari::bench::match
