#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <set>

namespace tonari {
namespace {

constexpr int statuses = static_cast<int>(Status::holder_died) + 1;

TEST(BaseStatus, EachHasADistinctNameAndExplanation) {
  std::set<std::string_view> names;
  std::set<std::string_view> explanations;
  for (int number = 0; number < statuses; ++number) {
    names.insert(to_string(static_cast<Status>(number)));
    explanations.insert(explain(static_cast<Status>(number)));
  }

  EXPECT_EQ(names.size(), static_cast<std::size_t>(statuses));
  EXPECT_EQ(explanations.size(), static_cast<std::size_t>(statuses));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(Status::peer_gone), "peer_gone");
}

TEST(BaseStatus, ANumberThatIsNoStatusIsSafeToPrint) {
  EXPECT_EQ(to_string(static_cast<Status>(statuses)), "unknown");
  EXPECT_FALSE(explain(static_cast<Status>(statuses)).empty());
}

}  // namespace
}  // namespace tonari
