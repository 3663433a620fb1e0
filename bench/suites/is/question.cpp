// `tonari bench is`: its cases. bench/is.hpp computes.

#include "driver/steps_question.hpp"

namespace tonari::cli {

namespace {

class Is final : public StepsQuestion {
 public:
  [[nodiscard]] std::string_view name() const override { return "is"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast is NPB's integer sort with messages, with shared arrays, and with threads?";
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the rate in million keys a second.\n"
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

}  // namespace

std::unique_ptr<Question> make_is() { return std::make_unique<Is>(); }

}  // namespace tonari::cli
