#include "message/operation_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace tonari::message {
namespace {

// Makes the same random insertions and removals in a vector and compares.
TEST(OperationList, KeepsOrderUnderAnyInsertionAndRemoval) {
  constexpr std::uint64_t seed = 5;
  std::mt19937_64 random(seed);
  alignas(64) static std::byte nowhere[64];  // the list never looks at a context
  auto& context = reinterpret_cast<Context&>(nowhere);
  std::deque<Operation> operations;
  for (int i = 0; i < 20; ++i) operations.emplace_back(Operation::Kind::send, context);
  OperationList list;
  std::vector<Operation*> model;

  for (int step = 0; step < 20'000; ++step) {
    Operation& operation = operations[random() % operations.size()];
    const auto found = std::find(model.begin(), model.end(), &operation);
    if (found != model.end()) {
      list.remove(operation);
      model.erase(found);
    } else if (random() % 2 == 0) {
      list.push_back(operation);
      model.push_back(&operation);
    } else {
      const std::size_t place = random() % (model.size() + 1);  // 0: at the front
      list.insert_after(place == 0 ? nullptr : model[place - 1], operation);
      model.insert(model.begin() + static_cast<std::ptrdiff_t>(place), &operation);
    }

    std::vector<Operation*> forward;
    Operation* before = nullptr;
    for (Operation* at = list.front(); at != nullptr; at = at->links.next) {
      ASSERT_EQ(at->links.previous, before) << "seed " << seed << ", step " << step;
      forward.push_back(before = at);
    }
    ASSERT_EQ(forward, model) << "seed " << seed << ", step " << step;
  }
}

}  // namespace
}  // namespace tonari::message
