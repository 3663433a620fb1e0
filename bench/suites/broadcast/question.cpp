// `tonari bench broadcast`: its options, launches and tables. See measure.hpp.

#include "driver/collective_question.hpp"
#include "driver/registry.hpp"

namespace tonari::bench::driver::broadcast {

namespace {

class Broadcast final : public CollectiveQuestion {
 public:
  Broadcast()
      : CollectiveQuestion(
            Collective{"broadcast",
                       "how long does a broadcast of N bytes take, until each rank has it and until all have?",
                       "Prints medians in microseconds, of the system's own broadcast (library) and of a tree made by "
                       "hand of sends "
                       "and receives. reply: until a rank's reply is back at rank 0. latency: among many broadcasts "
                       "in a row, until "
                       "the last rank has it.\n"
                       "\n"
                       "Examples:\n"
                       "  tonari bench broadcast --quick\n"
                       "  tonari bench broadcast --ranks 4,16 --sizes 8-1M --rival openmpi,mpich --json broadcast.json",
                       Sizes{"Bytes per broadcast", "8,64,512,4K,16K,64K,256K,1M", "8,1K,64K"},
                       {"latency", "reply"}}) {}
};

const Registered<Broadcast> registered(Topic::collectives, 2);

}  // namespace

}  // namespace tonari::bench::driver::broadcast
