// `tonari bench fault`: its options, launches and tables. See far.cpp.

#include "driver/far_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::fault {

namespace {

constexpr FarKind kind{
    .name = "fault",
    .asks = "what does it cost to read, and to write, 4 KiB somewhere in memory that is partly local?",
    .metric = "rate",
    .is_rate = true,
    .counts_bytes = true,
    .size_help = "The memory, in bytes, with K, M, G, T",
    .size = 768 << 20,
    .quick_size = 64 << 20,
    .data_bytes = [](std::uint64_t bytes) { return bytes; },
    .budget_s = 3,
    .quick_budget_s = 0.3,
    .examples =
        "Prints how many accesses one thread makes a second, to whole pages that are chosen at random; and how long "
        "one "
        "takes, median and 99th percentile, whether its page was local or not. tonari-core is `tonari far --bind "
        "core`: a "
        "fault wakes no other processor.\n"
        "\n"
        "Examples:\n"
        "  tonari bench fault --quick\n"
        "  tonari bench fault --local 20 --rival swap-zram,swap-file,mmap --json fault.json",
    .times_each_access = true};

class Fault final : public FarQuestion {
 public:
  Fault() : FarQuestion(kind) {}
};

const Registered<Fault> registered(Topic::far_memory, 5);

}  // namespace

}  // namespace tonari::bench::driver::fault
