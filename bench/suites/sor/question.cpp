// `tonari bench sor`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"
#include "driver/steps_question.hpp"

namespace tonari::bench::driver::sor {

namespace {

class Sor final : public StepsQuestion {
 public:
  [[nodiscard]] std::string_view name() const override { return "sor"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast is red-black relaxation where all pages are written by all ranks?";
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the rate in cells per microsecond. Columns are dealt, so every page has parts of all ranks; in\n"
           "share-apart-rows rows are, and no page has. guarded has the columns that neighbours read in one piece.\n"
           "\n"
           "Examples:\n"
           "  tonari bench sor --quick\n"
           "  tonari bench sor --size 2000 --rival openmpi,mpich --json sor.json";
  }

 protected:
  [[nodiscard]] std::vector<StepsCase> own_cases() const override {
    return {{"share-apart-rows", StepsCase::Way::share, true, {"--named=1", "--deal=rows"}}, guarded()};
  }
  [[nodiscard]] StepsSize size() const override { return rows("500", "60"); }
};

const Registered<Sor> registered(Topic::applications, 6);

}  // namespace

}  // namespace tonari::bench::driver::sor
