// `tonari bench stream`: its options, launches and tables. See far.cpp.

#include "driver/far_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::stream {

namespace {

constexpr FarKind kind{
    .name = "stream",
    .asks = "how fast is STREAM's triad over arrays of which a part is local?",
    .metric = "triad",
    .is_rate = true,
    .counts_bytes = true,
    .size_help = "The three arrays together, in bytes, with K, M, G, T",
    .size = 768 << 20,
    .quick_size = 96 << 20,
    .data_bytes = [](std::uint64_t bytes) { return bytes; },
    .budget_s = 10,
    .quick_budget_s = 0.5,
    .examples =
        "Prints GB/s as STREAM counts them, the median of all passes of all rounds but the first pass of each program, "
        "and "
        "in brackets what share of the speed in local memory that is. Case remote: nothing of the arrays is local when "
        "a "
        "pass begins, so all of it is fetched once; one thread.\n"
        "\n"
        "Examples:\n"
        "  tonari bench stream --quick\n"
        "  tonari bench stream --local 20 --rival swap-zram,swap-file,mmap --json stream.json\n"
        "  tonari bench stream --cases remote --apart network --network tcp --interface lo --rival ucx",
    .has_remote_case = true};

class Stream final : public FarQuestion {
 public:
  Stream() : FarQuestion(kind) {}
};

const Registered<Stream> registered(Topic::far_memory, 1);

}  // namespace

}  // namespace tonari::bench::driver::stream
