// `tonari bench allreduce`: its options, launches and tables. See measure.hpp.

#include "driver/collective_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::allreduce {

namespace {

class Allreduce final : public CollectiveQuestion {
 public:
  Allreduce()
      : CollectiveQuestion(Collective{
            "allreduce",
            "how long does an all-reduce of N bytes take?",
            "Prints the time of a sum of doubles, in place, among many in a row, the median of all rounds, in "
            "microseconds.\n"
            "\n"
            "Examples:\n"
            "  tonari bench allreduce --quick\n"
            "  tonari bench allreduce --ranks 4,16 --sizes 8-1M --rival openmpi,mpich --json allreduce.json",
            Sizes{"Bytes per rank, multiples of 8", "8,64,512,4K,16K,64K,256K,1M", "8,1K,64K", sizeof(double)},
            {"latency"}}) {}
};

const Registered<Allreduce> registered(Topic::collectives, 3);

}  // namespace

}  // namespace tonari::bench::driver::allreduce
