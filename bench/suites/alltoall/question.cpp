// `tonari bench alltoall`: its options, launches and tables. See measure.hpp.

#include "driver/collective_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::alltoall {

namespace {

class Alltoall final : public CollectiveQuestion {
 public:
  Alltoall()
      : CollectiveQuestion(Collective{
            "alltoall",
            "how long does an all-to-all take, against the number of ranks?",
            "Prints the time of an all-to-all among many in a row, the median of all rounds, in microseconds.\n"
            "\n"
            "Examples:\n"
            "  tonari bench alltoall --quick\n"
            "  tonari bench alltoall --ranks 2,4,16 --sizes 8,64K --rival openmpi,mpich --json alltoall.json",
            Sizes{"Bytes from each rank to each", "8,1K,64K", "8,1K"},
            {"latency"}}) {}
};

const Registered<Alltoall> registered(Topic::collectives, 4);

}  // namespace

}  // namespace tonari::bench::driver::alltoall
