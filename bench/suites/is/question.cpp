// `tonari bench is`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"
#include "driver/steps_question.hpp"

namespace tonari::bench::driver::is {

namespace {

class Is final : public StepsQuestion {
 public:
  [[nodiscard]] std::string_view name() const override { return "is"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast is NPB's integer sort with messages, with shared arrays, and with threads?";
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the rate in million keys per second.\n"
           "\n"
           "Examples:\n"
           "  tonari bench is --quick\n"
           "  tonari bench is --class A --rival openmpi,mpich --json is.json";
  }

 protected:
  [[nodiscard]] StepsSize size() const override {
    return {"class", "NPB's: S has 64 Ki keys, W 1 Mi, A 8 Mi", "W", "S", {"S", "W", "A"}};
  }
};

const Registered<Is> registered(Topic::applications, 7);

}  // namespace

}  // namespace tonari::bench::driver::is
