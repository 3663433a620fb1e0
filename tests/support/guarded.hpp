#pragma once

#include "windows.hpp"

#include <tonari/guarded.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

// Runs tests of guarded data with every combination of options.
namespace tonari::test {

/// A variant and the options of guarded data.
struct GuardedSetting {
  Variant variant;
  OnWrite on_write;
  Mover mover;
};
inline void PrintTo(const GuardedSetting& setting, std::ostream* stream) { *stream << setting.variant.name; }

inline std::string name_of_setting(const testing::TestParamInfo<GuardedSetting>& info) {
  constexpr std::array movers{"OwnerPuts", "AskerAsks", "AskerGets"};
  return info.param.variant.name + (info.param.on_write == OnWrite::update ? "Update" : "Invalidate") +
         movers[static_cast<std::size_t>(info.param.mover)];
}

inline std::vector<Variant> guarded_variants() {
  const std::string network = network_setting();
  return {
      {"OneHost", {}},
      {"Memory", {"TONARI_APART=memory"}},
      {"Network", {"TONARI_APART=network", network}},
      {"MemoryNoService", {"TONARI_APART=memory", "TONARI_SERVICE_THREAD=off"}},
  };
}

/// Returns every combination of options in memory and over the network, and two combinations for the variants whose
/// options change nothing (one host) or little (with or without a service thread).
inline std::vector<GuardedSetting> guarded_settings() {
  std::vector<GuardedSetting> all;
  for (const Variant& variant : guarded_variants()) {
    const bool every = variant.name == "Memory" || variant.name == "Network";
    for (const OnWrite on_write : {OnWrite::invalidate, OnWrite::update}) {
      for (const Mover mover : {Mover::owner_puts, Mover::asker_asks, Mover::asker_gets}) {
        const bool opposite = (on_write == OnWrite::update) == (mover == Mover::asker_gets);
        if (every || (opposite && mover != Mover::asker_asks)) all.push_back({variant, on_write, mover});
      }
    }
  }
  return all;
}

/// A test that runs with every combination of options.
class OnEveryGuardedSetting : public testing::TestWithParam<GuardedSetting> {
 protected:
  static void run(int ranks, const std::function<void(Job&)>& body) {
    as_jobs(ranks, body, GetParam().variant.settings);
  }
  static GuardedOptions options(int home = 0) { return {GetParam().on_write, GetParam().mover, JobRank{home}}; }
  static int turns(int usual) { return rounds(GetParam().variant.name == "Network" ? usual / 4 : usual); }
  static Status meet(Job& job) { return Communicator(job).barrier(); }
};

}  // namespace tonari::test
