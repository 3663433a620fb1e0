// `tonari bench barrier`: its options, launches and tables. See measure.hpp.

#include "driver/collective_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::barrier {

namespace {

class Barrier final : public CollectiveQuestion {
 public:
  Barrier()
      : CollectiveQuestion(
            Collective{"barrier",
                       "how long does a barrier take, against the number of ranks?",
                       "Prints the time of a barrier among many in a row, the median of all rounds, in microseconds.\n"
                       "\n"
                       "Examples:\n"
                       "  tonari bench barrier --quick\n"
                       "  tonari bench barrier --ranks 2,3,4,16 --rival openmpi,mpich --json barrier.json",
                       std::nullopt,
                       {"latency"}}) {}
};

const Registered<Barrier> registered(Topic::collectives, 1);

}  // namespace

}  // namespace tonari::bench::driver::barrier
