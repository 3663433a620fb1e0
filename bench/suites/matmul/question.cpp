// `tonari bench matmul`: its options, launches and tables. See far.cpp.

#include "driver/far_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::matmul {

namespace {

constexpr FarKind kind{.name = "matmul",
                       .asks = "how long does a blocked matrix product take whose matrices are partly local?",
                       .metric = "time",
                       .is_rate = false,
                       .counts_bytes = false,
                       .size_help = "The matrices' order, a multiple of 16; the DLM paper's is 4096",
                       .size = 3072,
                       .quick_size = 512,
                       .data_bytes = [](std::uint64_t n) { return 3 * n * n * 8; },
                       .budget_s = 0,
                       .quick_budget_s = 0,
                       .examples =
                           "Prints seconds, the median of all rounds, and in brackets what share of the speed in local "
                           "memory that is; then "
                           "the speed-up over one thread in local memory, as figures 1 to 3 of the DLM paper.\n"
                           "\n"
                           "Examples:\n"
                           "  tonari bench matmul --quick\n"
                           "  tonari bench matmul --size 4096 --local 100,20 --rival swap-zram --json matmul.json",
                       .size_multiple = 16,
                       .size_multiple_text = "a multiple of 16"};

class Matmul final : public FarQuestion {
 public:
  Matmul() : FarQuestion(kind) {}
};

const Registered<Matmul> registered(Topic::far_memory, 2);

}  // namespace

}  // namespace tonari::bench::driver::matmul
