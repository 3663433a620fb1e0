#include "../support/shared.hpp"

#include "share/share_runtime.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// Tests of matrices whose rows have their homes at the ranks that work on them.
namespace tonari {
namespace {

TEST(RankWith, ReturnsTheRankWhosePartContainsTheIndex) {
  for (int ranks = 1; ranks < 9; ++ranks) {
    for (std::size_t count = 1; count < 40; ++count) {
      for (int rank = 0; rank < ranks; ++rank) {
        const share::Part part = share::part_of(count, JobRank{rank}, ranks);
        for (std::size_t i = part.first; i < part.first + part.count; ++i) {
          ASSERT_EQ(detail::rank_with(i, count, ranks), rank) << i << " of " << count << " over " << ranks;
        }
      }
    }
  }
}

class SharedMatrix : public test::OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedMatrix, testing::ValuesIn(test::ways_to_share()), test::name_of);

std::vector<MatrixOptions> all_options() {
  MatrixOptions on_pages;
  on_pages.rows_on_pages = true;
  MatrixOptions named;
  named.writes_are_named = true;
  MatrixOptions updated = named;
  updated.rows_on_pages = updated.updates = true;
  return {MatrixOptions{}, on_pages, named, updated};
}

TEST_P(SharedMatrix, IsZeroUnderEveryPlacement) {
  for (const MatrixOptions& options : all_options()) {
    run(3, [&options](Job& job) {
      const shared_matrix<double> matrix(job, 20, 33, options);
      ASSERT_EQ(matrix.rows(), 20u);
      ASSERT_EQ(matrix.columns(), 33u);
      EXPECT_EQ(matrix.row_bytes(), options.rows_on_pages ? 4096u : 33 * sizeof(double));
      for (std::size_t i = 0; i < matrix.rows(); ++i) {
        ASSERT_EQ(matrix.row(i).size(), 33u);
        for (const double each : matrix[i]) ASSERT_EQ(each, 0);
        ASSERT_EQ(&matrix[i][7], &matrix(i, 7));
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
    });
  }
}

TEST_P(SharedMatrix, GivesEachRankTheHomeOfAPartOfItsRows) {
  run(3, [](Job& job) {
    MatrixOptions options;
    options.rows_on_pages = true;
    const shared_matrix<float> matrix(job, 10, 1500, options);  // each row takes two pages
    std::size_t rows = 0;
    for (const JobRank rank : job.ranks()) rows += matrix.rows_of(rank).count;
    EXPECT_EQ(rows, 10u);
    ASSERT_EQ(matrix.own_rows().size(), matrix.rows_of(job.rank()).count);
    ASSERT_EQ(matrix.own_rows().front(), matrix.rows_of(job.rank()).first);
    if (job.hosts() > 1) {
      share::ShareRuntime::of(job.session()).sharing()->with(0, [&](share::Array& array) {
        for (std::size_t i = 0; i < matrix.rows(); ++i) {
          const bool own = detail::rank_with(i, matrix.rows(), job.size()) == job.rank();
          EXPECT_EQ(array.is_home(2 * i), own) << i;
          EXPECT_EQ(array.is_home(2 * i + 1), own) << i;
        }
      });
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

/// Returns a cell's next value from its own value and the cells above and below it.
std::uint64_t next(std::uint64_t above, std::uint64_t here, std::uint64_t below) {
  return above + 3 * here + 5 * below;
}

using Rows = std::vector<std::vector<std::uint64_t>>;

Rows step(const Rows& now) {
  Rows then = now;
  for (std::size_t i = 1; i + 1 < now.size(); ++i) {
    for (std::size_t j = 0; j < now[i].size(); ++j) then[i][j] = next(now[i - 1][j], now[i][j], now[i + 1][j]);
  }
  return then;
}

/// Computes this rank's rows of `then`. The adjacent rows of other ranks are prefetched before they are read.
void step_own(const shared_matrix<std::uint64_t>& now, const shared_matrix<std::uint64_t>& then) {
  const share::Part own{now.own_rows().front(), now.own_rows().size()};
  if (own.first > 0) now.prefetch_rows(own.first - 1, 1);
  if (own.first + own.count < now.rows()) now.prefetch_rows(own.first + own.count, 1);
  for (const std::size_t i : now.own_rows()) {
    if (i == 0 || i + 1 == now.rows()) continue;
    for (std::size_t j = 0; j < now.columns(); ++j) then(i, j) = next(now(i - 1, j), now(i, j), now(i + 1, j));
  }
  then.wrote_rows(own.first, own.count);
}

TEST_P(SharedMatrix, ComputesAStencilLikeASequentialProgram) {
  constexpr std::size_t rows = 23;
  constexpr std::size_t columns = 300;
  Rows start(rows, std::vector<std::uint64_t>(columns));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) start[i][j] = i * j + 1;
  }
  for (const MatrixOptions& options : all_options()) {
    run(3, [&](Job& job) {
      const shared_matrix<std::uint64_t> even(job, rows, columns, options);
      const shared_matrix<std::uint64_t> odd(job, rows, columns, options);
      for (const std::size_t i : even.own_rows()) {
        std::ranges::copy(start[i], even[i].begin());
        std::ranges::copy(start[i], odd[i].begin());
        even.wrote_rows(i, 1);
        odd.wrote_rows(i, 1);
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
      Rows model = start;
      for (int turn = 0; turn < 6; ++turn) {
        step_own(turn % 2 == 0 ? even : odd, turn % 2 == 0 ? odd : even);
        ASSERT_EQ(share::barrier(job), Status::ok);
        model = step(model);
      }
      for (std::size_t i = 0; i < rows; ++i) ASSERT_TRUE(std::ranges::equal(even[i], model[i])) << "row " << i;
      ASSERT_EQ(share::barrier(job), Status::ok);
    });
  }
}

TEST_P(SharedMatrix, MulticastsTheRowsOfEachRankToAll) {
  run(3, [](Job& job) {
    const shared_matrix<int> matrix(job, 20, 700);
    for (const std::size_t i : matrix.own_rows()) std::ranges::fill(matrix[i], static_cast<int>(i));
    const share::Part own = matrix.rows_of(job.rank());
    ASSERT_EQ(matrix.barrier_with_multicast(own.first, own.count), Status::ok);
    for (std::size_t i = 0; i < matrix.rows(); ++i) EXPECT_EQ(matrix(i, 699), static_cast<int>(i));
    EXPECT_EQ(matrix.barrier_with_multicast(0, 21), Status::bounds);
  });
}

TEST_P(SharedMatrix, RefusesImpossibleSizesAndMayBeEmpty) {
  run(2, [](Job& job) {
    constexpr std::size_t huge = ~std::size_t{0};
    MatrixOptions on_pages;
    on_pages.rows_on_pages = true;
    EXPECT_THROW(shared_matrix<double>(job, huge, huge), SetupError);
    EXPECT_THROW(shared_matrix<double>(job, 1 << 30, 1 << 30), SetupError);
    EXPECT_THROW(shared_matrix<double>(job, 1, huge, on_pages), SetupError);
    EXPECT_THROW(shared_matrix<char>(job, 2, huge - 5, on_pages), SetupError);
    EXPECT_EQ(shared_matrix<double>(job, 0, 10).rows(), 0u);
    EXPECT_TRUE(shared_matrix<double>(job, 10, 0).row(9).empty());
    EXPECT_TRUE(shared_matrix<double>(job, 1, 10).own_rows().empty() == (job.rank() == 1));
  });
}

}  // namespace
}  // namespace tonari
