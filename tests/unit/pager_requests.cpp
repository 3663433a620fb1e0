#include "pager/requests.hpp"

#include "../support/pager.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

// Tests of the queue between the fault thread and the movers, without threads and without paged memory.
namespace tonari {
namespace {

using pager::block_bytes;
using pager::Request;
using pager::Requests;

class PagerRequests : public testing::Test {
 protected:
  PagerRequests() : region_(block_bytes, 4 * block_bytes, source_, pager::Contents::zeros) {}

  [[nodiscard]] Request ahead(std::size_t block) { return {Request::What::block_ahead, &region_, block, 0}; }
  [[nodiscard]] Request wanted(std::size_t block) { return {Request::What::block, &region_, block, 7, 1000, 42}; }
  std::optional<Request> next() {
    const auto work = requests_.next(std::chrono::milliseconds{0});
    if (work.request) region_.users.fetch_sub(1);  // as RegionUse does
    return work.request;
  }

  test::MemorySource source_{4 * block_bytes};
  pager::Region region_;
  Requests requests_;
};

TEST_F(PagerRequests, ABlockThatAThreadWaitsForComesFirst) {
  requests_.add(ahead(0));
  requests_.add(wanted(1));
  EXPECT_EQ(next()->block, 1U);
  EXPECT_EQ(next()->block, 0U);
  EXPECT_FALSE(next());
}

TEST_F(PagerRequests, AThreadThatWaitsForABlockThatWasToBeReadAheadIsNotForgotten) {
  requests_.add(ahead(2));
  requests_.add(wanted(2));
  const auto request = next();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->what, Request::What::block);
  EXPECT_EQ(request->page, 7U);
  EXPECT_EQ(request->read_ns, 1000U);
  EXPECT_EQ(request->thread, 42U);
  EXPECT_FALSE(next());
  EXPECT_EQ(region_.users.load(), 0U);
}

TEST_F(PagerRequests, AStoppedQueueRefusesRequests) {
  requests_.add(ahead(0));
  requests_.stop();
  EXPECT_FALSE(requests_.add(ahead(1)));
  EXPECT_TRUE(next());
  EXPECT_FALSE(next());
}

}  // namespace
}  // namespace tonari
