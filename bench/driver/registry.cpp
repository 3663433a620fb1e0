#include "driver/registry.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tonari::bench::driver {

namespace {

struct Entry {
  Topic topic;
  int place;
  Registration::Make make;
};

// A local static: other files may register before the variables of this file are initialised.
std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

}  // namespace

Registration::Registration(Topic topic, int place, Make make) { entries().push_back({topic, place, make}); }

std::vector<std::unique_ptr<Question>> all_questions() {
  struct Made {
    std::tuple<Topic, int, std::string> key;
    std::unique_ptr<Question> question;
  };
  std::vector<Made> all;
  for (const auto& [topic, place, make] : entries()) {
    auto question = make();
    all.push_back({{topic, place, std::string(question->name())}, std::move(question)});
  }
  std::ranges::sort(all, {}, &Made::key);
  std::vector<std::unique_ptr<Question>> questions;
  for (auto& [key, question] : all) questions.push_back(std::move(question));
  return questions;
}

std::vector<std::string> names_of_benchmarks(const std::function<bool(const Question&)>& chosen) {
  std::vector<std::string> names;
  for (const auto& question : all_questions()) {
    if (chosen(*question)) names.emplace_back(question->name());
  }
  return names;
}

}  // namespace tonari::bench::driver
