// ranks: 1 5
#include "check.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

// Groups, against sets of numbers.

namespace {

MPI_Group world_group() {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  CHECK_EQUAL(MPI_Group_from_session_pset(session, "mpi://WORLD", &group), MPI_SUCCESS);
  MPI_Session_finalize(&session);
  return group;
}

std::vector<int> ranks_of(MPI_Group group) {
  int size = -1;
  CHECK_EQUAL(MPI_Group_size(group, &size), MPI_SUCCESS);
  std::vector<int> here(static_cast<std::size_t>(size));
  std::vector<int> in_world(here.size());
  for (int i = 0; i < size; ++i) here[static_cast<std::size_t>(i)] = i;
  MPI_Group world = world_group();
  CHECK_EQUAL(MPI_Group_translate_ranks(group, size, here.data(), world, in_world.data()), MPI_SUCCESS);
  MPI_Group_free(&world);
  return in_world;
}

MPI_Group make(MPI_Group from, const std::vector<int>& ranks) {
  MPI_Group made = MPI_GROUP_NULL;
  CHECK_EQUAL(MPI_Group_incl(from, static_cast<int>(ranks.size()), ranks.data(), &made), MPI_SUCCESS);
  return made;
}

std::vector<int> random_ranks(std::mt19937& random, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
  std::shuffle(ranks.begin(), ranks.end(), random);
  ranks.resize(random() % (ranks.size() + 1));
  return ranks;
}

bool has(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

void check_result(MPI_Group got, const std::vector<int>& expected) {
  CHECK(ranks_of(got) == expected);
  CHECK_EQUAL(got == MPI_GROUP_EMPTY, expected.empty());
  const auto mine = std::find(expected.begin(), expected.end(), test::rank());
  int rank = -1;
  CHECK_EQUAL(MPI_Group_rank(got, &rank), MPI_SUCCESS);
  CHECK_EQUAL(rank,
              mine != expected.end() ? static_cast<int>(mine - expected.begin()) : static_cast<int>(MPI_UNDEFINED));
  MPI_Group_free(&got);
  CHECK(got == MPI_GROUP_NULL);
}

void random_sets(MPI_Group world, unsigned seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const std::vector<int> a = random_ranks(random, test::ranks());
    const std::vector<int> b = random_ranks(random, test::ranks());
    MPI_Group group_a = make(world, a);
    MPI_Group group_b = make(world, b);

    std::vector<int> all = a;
    std::vector<int> both;
    std::vector<int> only_a;
    for (const int rank : a) (has(b, rank) ? both : only_a).push_back(rank);
    for (const int rank : b) {
      if (!has(a, rank)) all.push_back(rank);
    }
    MPI_Group result = MPI_GROUP_NULL;
    MPI_Group_union(group_a, group_b, &result);
    check_result(result, all);
    MPI_Group_intersection(group_a, group_b, &result);
    check_result(result, both);
    MPI_Group_difference(group_a, group_b, &result);
    check_result(result, only_a);

    int compared = -1;
    MPI_Group_compare(group_a, group_b, &compared);
    const bool same_set = std::set<int>(a.begin(), a.end()) == std::set<int>(b.begin(), b.end());
    CHECK_EQUAL(compared, static_cast<int>(a == b ? MPI_IDENT : same_set ? MPI_SIMILAR : MPI_UNEQUAL));

    // b as ranks of the world: leave them out.
    std::vector<int> others;
    for (int rank = 0; rank < test::ranks(); ++rank) {
      if (!has(b, rank)) others.push_back(rank);
    }
    MPI_Group_excl(world, static_cast<int>(b.size()), b.data(), &result);
    check_result(result, others);
    MPI_Group_free(&group_a);
    MPI_Group_free(&group_b);
  }
}

void ranges(MPI_Group world) {
  const int last = test::ranks() - 1;
  int all[][3] = {{last, 0, -1}};
  std::vector<int> backwards;
  for (int rank = last; rank >= 0; --rank) backwards.push_back(rank);
  MPI_Group result = MPI_GROUP_NULL;
  CHECK_EQUAL(MPI_Group_range_incl(world, 1, all, &result), MPI_SUCCESS);
  check_result(result, backwards);

  int even[][3] = {{0, last, 2}};  // `last` itself need not be reached
  std::vector<int> odd_ranks;
  std::vector<int> even_ranks;
  for (int rank = 0; rank <= last; ++rank) (rank % 2 == 0 ? even_ranks : odd_ranks).push_back(rank);
  CHECK_EQUAL(MPI_Group_range_incl(world, 1, even, &result), MPI_SUCCESS);
  check_result(result, even_ranks);
  CHECK_EQUAL(MPI_Group_range_excl(world, 1, even, &result), MPI_SUCCESS);
  check_result(result, odd_ranks);

  int none[][3] = {{last, 0, 1}};  // empty, unless there is one rank
  CHECK_EQUAL(MPI_Group_range_incl(world, 1, none, &result), MPI_SUCCESS);
  check_result(result, last == 0 ? std::vector<int>{0} : std::vector<int>{});
  CHECK_EQUAL(MPI_Group_range_incl(world, 0, nullptr, &result), MPI_SUCCESS);
  check_result(result, {});

  int no_stride[][3] = {{0, last, 0}};
  CHECK_EQUAL(MPI_Group_range_incl(world, 1, no_stride, &result), static_cast<int>(MPI_ERR_ARG));
  int twice[][3] = {{0, 0, 1}, {0, last, 1}};
  CHECK_EQUAL(MPI_Group_range_incl(world, 2, twice, &result), static_cast<int>(MPI_ERR_RANK));
  int outside[][3] = {{0, last + 1, 1}};
  CHECK_EQUAL(MPI_Group_range_excl(world, 1, outside, &result), static_cast<int>(MPI_ERR_RANK));
}

void translations(MPI_Group world) {
  MPI_Group self = make(world, {test::rank()});
  const int last = test::ranks() - 1;
  const int asked[] = {0, MPI_PROC_NULL, last};
  int got[3];
  CHECK_EQUAL(MPI_Group_translate_ranks(world, 3, asked, self, got), MPI_SUCCESS);
  CHECK_EQUAL(got[0], test::rank() == 0 ? 0 : static_cast<int>(MPI_UNDEFINED));
  CHECK_EQUAL(got[1], static_cast<int>(MPI_PROC_NULL));
  CHECK_EQUAL(got[2], test::rank() == last ? 0 : static_cast<int>(MPI_UNDEFINED));
  const int outside[] = {last + 1};
  CHECK_EQUAL(MPI_Group_translate_ranks(world, 1, outside, self, got), static_cast<int>(MPI_ERR_RANK));
  MPI_Group_free(&self);
}

void wrong_arguments(MPI_Group world) {
  MPI_Group result = MPI_GROUP_NULL;
  const int twice[] = {0, 0};
  CHECK_EQUAL(MPI_Group_incl(world, 2, twice, &result), static_cast<int>(MPI_ERR_RANK));
  CHECK_EQUAL(MPI_Group_excl(world, 2, twice, &result), static_cast<int>(MPI_ERR_RANK));
  CHECK_EQUAL(MPI_Group_incl(world, -1, twice, &result), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Group_incl(MPI_GROUP_EMPTY, 1, twice, &result), static_cast<int>(MPI_ERR_RANK));
  CHECK_EQUAL(MPI_Group_union(world, MPI_GROUP_NULL, &result), static_cast<int>(MPI_ERR_GROUP));
  CHECK_EQUAL(MPI_Group_free(&result), static_cast<int>(MPI_ERR_GROUP));
  MPI_Group empty = MPI_GROUP_EMPTY;
  CHECK_EQUAL(MPI_Group_free(&empty), MPI_SUCCESS);
  int size = -1;
  CHECK_EQUAL(MPI_Group_size(MPI_GROUP_EMPTY, &size), MPI_SUCCESS);
  CHECK_EQUAL(size, 0);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Group world = world_group();
  CHECK(world != MPI_GROUP_NULL);
  random_sets(world, test::own_seed());
  ranges(world);
  translations(world);
  wrong_arguments(world);
  MPI_Group_free(&world);
  MPI_Finalize();
}
