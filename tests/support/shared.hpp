#pragma once

#include "windows.hpp"

#include <tonari/share.hpp>

#include <functional>
#include <string>
#include <vector>

// Runs tests of shared arrays with every way of sharing.
namespace tonari::test {

inline std::vector<Variant> ways_to_share() {
  return {
      {"OneHost", {}},
      {"Apart", {"TONARI_APART=memory"}},
      {"ApartNetwork", {"TONARI_APART=network", network_setting()}},
  };
}

/// The same variants, and variants that use only the features of kernels before Linux 6.4.
inline std::vector<Variant> ways_to_share_and_kernels() {
  auto all = ways_to_share();
  all.push_back({"ApartOldKernel", {"TONARI_APART=memory", "TONARI_NEWEST_KERNEL=off"}});
  return all;
}

class OnEveryWayToShare : public testing::TestWithParam<Variant> {
 protected:
  static void run(int ranks, const std::function<void(Job&)>& body) { as_jobs(ranks, body, GetParam().settings); }
  /// Returns the number of rounds of a test.
  static int turns(int usual) { return rounds(GetParam().name == "ApartNetwork" ? std::max(usual / 10, 1) : usual); }
};

}  // namespace tonari::test
