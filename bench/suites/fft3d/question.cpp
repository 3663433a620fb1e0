// `tonari bench fft3d`: its options, launches and tables. See far.cpp.

#include "driver/far_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::fft3d {

namespace {

constexpr FarKind kind{
    .name = "fft3d",
    .asks = "how long does FFTW's transform in three dimensions take of points that are partly local?",
    .metric = "time",
    .is_rate = false,
    .counts_bytes = false,
    .size_help = "n: the points are n x n x n/2, an even number; the DLM paper's is 2048",
    .size = 400,
    .quick_size = 160,
    .data_bytes = [](std::uint64_t n) { return n * n * (n / 2) * 16; },
    .budget_s = 0,
    .quick_budget_s = 0,
    .examples =
        "Prints seconds of a transform in place, the median of all rounds, and in brackets what share of the speed in "
        "local memory that is; then the speed-up over one thread in local memory, as figures 1 to 3 of the DLM paper.\n"
        "\n"
        "Examples:\n"
        "  tonari bench fft3d --quick\n"
        "  tonari bench fft3d --size 512 --local 100,20 --rival swap-zram --json fft3d.json",
    .size_multiple = 2,
    .size_multiple_text = "an even number"};

class Fft3d final : public FarQuestion {
 public:
  Fft3d() : FarQuestion(kind) {}
};

const Registered<Fft3d> registered(Topic::far_memory, 4);

}  // namespace

}  // namespace tonari::bench::driver::fft3d
