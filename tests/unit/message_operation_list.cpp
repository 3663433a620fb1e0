#include "message/operation_list.hpp"

#include "../support/random.hpp"
#include "message/operation_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace tonari::message {
namespace {

// `count` operations; the lists never look at their context.
std::deque<Operation> some_operations(int count) {
  alignas(64) static std::byte nowhere[64];
  auto& context = reinterpret_cast<Context&>(nowhere);
  std::deque<Operation> operations;
  for (int i = 0; i < count; ++i) operations.emplace_back(Operation::Kind::send, context);
  return operations;
}

// Makes the same random insertions and removals in a vector and compares.
TEST(OperationList, KeepsOrderUnderAnyInsertionAndRemoval) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  std::deque<Operation> operations = some_operations(20);
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
      list.push_front(operation);
      model.insert(model.begin(), &operation);
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

// Adds, removes and takes 20 operations at random, and compares with a vector.
TEST(OperationSet, HasTheAddedOperationsThatWereNotRemovedOrTaken) {
  const std::uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  std::deque<Operation> operations = some_operations(20);
  OperationSet set;
  set.reserve(operations.size());
  std::vector<const Operation*> model;
  const auto sorted = [](auto range) {
    std::vector<const Operation*> result(range.begin(), range.end());
    std::ranges::sort(result);
    return result;
  };

  for (int step = 0; step < 20'000; ++step) {
    Operation& operation = operations[random() % operations.size()];
    const auto found = std::ranges::find(model, &operation);
    if (random() % 4 == 0) {
      const auto is_wanted = [](const Operation& each) { return each.call.tag > 0; };
      const Operation* const taken = set.take(is_wanted);
      const bool any = std::ranges::any_of(model, [&](const Operation* each) { return is_wanted(*each); });
      ASSERT_EQ(taken != nullptr, any) << "seed " << seed << ", step " << step;
      ASSERT_TRUE(taken == nullptr || is_wanted(*taken));
      ASSERT_EQ(std::erase(model, taken), any ? 1U : 0U);
    } else if (found != model.end()) {
      set.remove(operation);
      model.erase(found);
    } else {
      operation.call.tag = static_cast<int>(random() % 2);
      set.add(operation);
      model.push_back(&operation);
    }
    ASSERT_EQ(sorted(set), sorted(model)) << "seed " << seed << ", step " << step;
  }
}

TEST(OperationSet, TakesTurns) {
  std::deque<Operation> operations = some_operations(5);
  OperationSet set;
  set.reserve(operations.size());
  for (Operation& operation : operations) set.add(operation);

  std::vector<const Operation*> seen;
  for (int turn = 0; turn < 20; ++turn) {  // each is put back at once
    Operation* const taken = set.take([](const Operation&) { return true; });
    ASSERT_NE(taken, nullptr);
    if (std::ranges::find(seen, taken) == seen.end()) seen.push_back(taken);
    set.add(*taken);
  }

  EXPECT_EQ(seen.size(), operations.size());
}

}  // namespace
}  // namespace tonari::message
