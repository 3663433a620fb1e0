// `tonari bench himeno`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"
#include "driver/steps_question.hpp"

namespace tonari::bench::driver::himeno {

namespace {

class Himeno final : public StepsQuestion {
 public:
  [[nodiscard]] std::string_view name() const override { return "himeno"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast is Himeno's benchmark with messages, shared arrays, guarded planes, and threads?";
  }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    // Figure 7 of the Fagus paper: guarded data on 1 to 4 hosts, over verbs and IP.
    std::vector<UsualRun> runs{
        {"", {"--rival", "auto"}},
        {"-network", {"--cases", "guarded", "--ranks", "1,2,3,4", "--apart", "network", "--network", "tcp,rc"}}};
    if (!quick) runs.push_back({"-M", {"--size", "M", "--rival", "auto"}});
    return runs;
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the rate in MFLOPS, as the benchmark counts them: 34 operations for each element and step.\n"
           "\n"
           "Examples:\n"
           "  tonari bench himeno --quick\n"
           "  tonari bench himeno --size M --rival openmpi,mpich --json himeno.json";
  }

 protected:
  [[nodiscard]] std::vector<StepsCase> own_cases() const override { return {guarded()}; }
  [[nodiscard]] StepsSize size() const override {
    return {"size",
            "The benchmark's: S has 64 x 64 x 128 elements, M 128 x 128 x 256, XS 32 x 32 x 64",
            "S",
            "XS",
            {"XS", "S", "M"}};
  }
};

const Registered<Himeno> registered(Topic::applications, 5);

}  // namespace

}  // namespace tonari::bench::driver::himeno
