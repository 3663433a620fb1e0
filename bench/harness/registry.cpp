#include "harness/registry.hpp"

#include <map>
#include <utility>

namespace tonari::bench {

namespace {

// A local static: other files may register before the variables of this file are initialised.
std::map<std::pair<std::string, std::string>, Measurement::Function>& measurements() {
  static std::map<std::pair<std::string, std::string>, Measurement::Function> all;
  return all;
}

}  // namespace

Measurement::Measurement(const char* question, const char* system, Function measure) {
  measurements().insert_or_assign({question, system}, measure);
}

Measurement::Function find_measurement(const std::string& question, const std::string& system) {
  const auto found = measurements().find({question, system});
  return found == measurements().end() ? nullptr : found->second;
}

}  // namespace tonari::bench
