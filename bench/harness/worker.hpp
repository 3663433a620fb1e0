#pragma once

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench {

// A worker is a program whose ranks measure one benchmark for one system. `tonari bench` starts it with options of the
// form
// --key=value, the same for every system. Rank 0 writes results to the file of --output at once, one JSON object per
// line:
//
//   {"system": "openmpi-4.1.4"}                                    first
//   {"parameter": {"pool_bytes": 134217728}}                       a value that the worker chose
//   {"series": {"case": "warm", "metric": "latency", "unit": "us", "x": "bytes"}, "at": 8, "samples": [0.31, 0.3]}
//   {"check": {"case": "started", "metric": "residual", "unit": "", "x": "n"}, "at": 1000, "value": 0.02, "bound": 30}
//   {"done": true}                                                 last: without it the run has failed

/// The options of a worker, checked by `tonari bench`. The caller supplies the default of a missing option.
class Options {
 public:
  Options(int argc, char** argv, int first) {
    for (int i = first; i < argc; ++i) {
      const std::string_view option = argv[i];
      const auto equals = option.find('=');
      if (!option.starts_with("--") || equals == option.npos) {
        throw std::invalid_argument("worker option '" + std::string(option) + "' is not --key=value");
      }
      values_[std::string(option.substr(2, equals - 2))] = option.substr(equals + 1);
    }
  }

  [[nodiscard]] std::string text(const std::string& key, const std::string& fallback) const {
    const auto found = values_.find(key);
    return found == values_.end() ? fallback : found->second;
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    const auto found = values_.find(key);
    return found == values_.end() ? fallback : std::stod(found->second);
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& key, const std::string& fallback) const {
    std::vector<std::string> parts;
    std::istringstream all(text(key, fallback));
    for (std::string part; std::getline(all, part, ',');) parts.push_back(part);
    return parts;
  }
  [[nodiscard]] std::vector<std::size_t> sizes(const std::string& key, const std::string& fallback) const {
    std::vector<std::size_t> parts;
    for (const auto& part : list(key, fallback)) parts.push_back(std::stoull(part));
    return parts;
  }

 private:
  std::map<std::string, std::string> values_;
};

/// Names a series: what is measured, and in which unit.
struct Series {
  std::string label;  ///< "case" in the results.
  std::string metric;
  std::string unit;
  std::string x;
};

/// Writes results, one line at a time, on rank 0. On other ranks it does nothing.
class Output {
 public:
  Output(const Options& options, int rank) {
    if (rank != 0) return;
    const auto path = options.text("output", "/dev/stdout");
    file_.reset(std::fopen(path.c_str(), "a"));
    if (!file_) throw std::runtime_error("cannot write results to " + path + ": " + std::strerror(errno));
  }

  void system(const std::string& name) { line("{\"system\": \"" + name + "\"}"); }
  void done() { line("{\"done\": true}"); }

  void parameter(const std::string& name, double value) {
    line("{\"parameter\": {\"" + name + "\": " + print(value) + "}}");
  }
  void parameter(const std::string& name, const std::string& value) {
    line("{\"parameter\": {\"" + name + "\": \"" + value + "\"}}");
  }

  void samples(const Series& series, double at, const std::vector<double>& values) {
    std::string text = "{\"series\": " + print(series) + ", \"at\": " + print(at) + ", \"samples\": [";
    for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + print(values[i]);
    line(text + "]}");
  }

  /// Writes a value that must be below `bound`; otherwise the benchmark fails.
  void check(const Series& series, double at, double value, double bound) {
    line("{\"check\": " + print(series) + ", \"at\": " + print(at) + ", \"value\": " + print(value) +
         ", \"bound\": " + print(bound) + "}");
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  static std::string print(double value) {
    char text[32];
    const bool whole = std::fabs(value) < 1e15 && value == std::floor(value);
    std::snprintf(text, sizeof text, whole ? "%.0f" : "%.7g", value);
    return std::strpbrk(text, "ni") ? "null" : text;  // JSON has no nan or inf
  }
  static std::string print(const Series& series) {
    return "{\"case\": \"" + series.label + "\", \"metric\": \"" + series.metric + "\", \"unit\": \"" + series.unit +
           "\", \"x\": \"" + series.x + "\"}";
  }
  void line(const std::string& text) {
    if (!file_) return;
    if (std::fprintf(file_.get(), "%s\n", text.c_str()) < 0 || std::fflush(file_.get()) != 0) {
      throw std::runtime_error(std::string("cannot write results: ") + std::strerror(errno));
    }
  }

  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tonari::bench
