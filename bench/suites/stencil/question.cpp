// `tonari bench stencil`: its options, launches and tables. See far.cpp.

#include "driver/far_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::stencil {

namespace {

constexpr FarKind kind{.name = "stencil",
                       .asks = "how long does a stencil with a 15 x 15 mask take over a picture that is partly local?",
                       .metric = "time",
                       .is_rate = false,
                       .counts_bytes = false,
                       .size_help = "The picture's width and height; the DLM paper's is 8192",
                       .size = 6144,
                       .quick_size = 1536,
                       .data_bytes = [](std::uint64_t n) { return 2 * n * n * 8; },
                       .budget_s = 0,
                       .quick_budget_s = 0,
                       .examples =
                           "Prints seconds, the median of all rounds, and in brackets what share of the speed in local "
                           "memory that is; then "
                           "the speed-up over one thread in local memory, as figures 1 to 3 of the DLM paper.\n"
                           "\n"
                           "Examples:\n"
                           "  tonari bench stencil --quick\n"
                           "  tonari bench stencil --size 8192 --local 100,20 --rival swap-zram --json stencil.json"};

class Stencil final : public FarQuestion {
 public:
  Stencil() : FarQuestion(kind) {}
};

const Registered<Stencil> registered(Topic::far_memory, 3);

}  // namespace

}  // namespace tonari::bench::driver::stencil
