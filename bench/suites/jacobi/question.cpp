// `tonari bench jacobi`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"
#include "driver/steps_question.hpp"

namespace tonari::bench::driver::jacobi {

namespace {

class Jacobi final : public StepsQuestion {
 public:
  [[nodiscard]] std::string_view name() const override { return "jacobi"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast is Jacobi's iteration with messages, shared arrays, guarded rows, and threads?";
  }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    if (quick) return {{"", {"--rival", "auto"}}};
    return {{"", {"--misplaced", "--rival", "auto"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the rate in GFLOP/s: four operations for each element and step.\n"
           "\n"
           "Examples:\n"
           "  tonari bench jacobi --quick\n"
           "  tonari bench jacobi --size 4000 --rival openmpi,mpich --json jacobi.json\n"
           "  tonari bench jacobi --cases share-apart --misplaced";
  }
  void add_options(CLI::App& command, BenchOptions& options) override {
    StepsQuestion::add_options(command, options);
    command
        .add_flag("--misplaced", misplaced_,
                  "Also with homes of 16 pages at each rank in turn, which move: case share-apart-misplaced")
        ->disable_flag_override()
        ->group("The question");
  }

 protected:
  [[nodiscard]] std::vector<StepsCase> own_cases() const override {
    return {{"share-apart-misplaced", StepsCase::Way::share, true, {"--misplaced=1", "--warm-steps=20"}, false},
            guarded()};
  }
  [[nodiscard]] std::string added_cases() const override { return misplaced_ ? ",share-apart-misplaced" : ""; }
  [[nodiscard]] StepsSize size() const override { return rows("2000", "200"); }

 private:
  bool misplaced_ = false;
};

const Registered<Jacobi> registered(Topic::applications, 4);

}  // namespace

}  // namespace tonari::bench::driver::jacobi
