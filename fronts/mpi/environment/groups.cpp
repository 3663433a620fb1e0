#include "functions.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/process.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

// Groups. Every function visits each rank a constant number of times.
namespace tonari::mpi {

namespace {

int size_of(const Group& group) noexcept { return group.ranks.size(); }
JobRank at(const Group& group, int rank) noexcept { return group.ranks.at(Rank{rank}); }
bool has(const Group& group, JobRank rank) noexcept { return group.ranks.position(rank).has_value(); }

// The group belongs to the session of the groups that it is made of.
MPI_Group make(std::vector<JobRank> ranks, const Group& from) {
  return ranks.empty() ? MPI_GROUP_EMPTY : new Group(tonari::Group(std::move(ranks)), from.session_buffer);
}
MPI_Group make(std::vector<JobRank> ranks, const Group& from, const Group& other) {
  return make(std::move(ranks), from.session_buffer != nullptr ? from : other);
}

void check_count(int n) {
  if (n < 0) throw Failure(MPI_ERR_ARG, fmt::format("n is {}: it must not be negative", n));
}

// `array`[`index`] names the argument in the error.
void check_rank(const Group& group, int rank, const char* array, int index) {
  if (rank >= 0 && rank < size_of(group)) return;
  const std::string ranks = size_of(group) == 0 ? "the group has no ranks"
                                                : fmt::format("the ranks of the group are 0 to {}", size_of(group) - 1);
  throw Failure(MPI_ERR_RANK, fmt::format("{}[{}] names rank {}: {}", array, index, rank, ranks));
}

// A list of ranks of a group, each at most once.
class Chosen {
 public:
  explicit Chosen(const Group& group) : group_(group), is_chosen_(static_cast<std::size_t>(size_of(group))) {}
  void add(int rank, const char* array, int index) {
    check_rank(group_, rank, array, index);
    if (is_chosen_[static_cast<std::size_t>(rank)]) {
      throw Failure(MPI_ERR_RANK, fmt::format("{}[{}] names rank {}, which {} has already", array, index, rank, array));
    }
    is_chosen_[static_cast<std::size_t>(rank)] = true;
    in_order_.push_back(at(group_, rank));
  }
  [[nodiscard]] std::vector<JobRank> in_order() && { return std::move(in_order_); }
  [[nodiscard]] std::vector<JobRank> others() const {
    std::vector<JobRank> ranks;
    for (int rank = 0; rank < size_of(group_); ++rank) {
      if (!is_chosen_[static_cast<std::size_t>(rank)]) ranks.push_back(at(group_, rank));
    }
    return ranks;
  }

 private:
  const Group& group_;
  std::vector<bool> is_chosen_;
  std::vector<JobRank> in_order_;
};

Chosen choose(const Group& group, int n, const int* ranks) {
  check_count(n);
  Chosen chosen(group);
  for (int i = 0; i < n; ++i) chosen.add(ranks[i], "ranks", i);
  return chosen;
}

// Each range is {first, last, stride}.
Chosen choose(const Group& group, int n, const int (*ranges)[3]) {
  check_count(n);
  Chosen chosen(group);
  for (int i = 0; i < n; ++i) {
    const long first = ranges[i][0];
    const long last = ranges[i][1];
    const long stride = ranges[i][2];
    if (stride == 0) throw Failure(MPI_ERR_ARG, fmt::format("ranges[{}] has a stride of 0", i));
    for (long rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      chosen.add(static_cast<int>(rank), "ranges", i);
    }
  }
  return chosen;
}

// Appends the ranks of `from` that are in `other`, or the ranks that are not.
void append(std::vector<JobRank>& to, const Group& from, const Group& other, bool are_in_other) {
  for (const JobRank rank : from.ranks.ranks()) {
    if (has(other, rank) == are_in_other) to.push_back(rank);
  }
}

int compare(const Group& one, const Group& other) {
  if (one.ranks.ranks() == other.ranks.ranks()) return MPI_IDENT;
  if (size_of(one) != size_of(other)) return MPI_UNEQUAL;
  for (const JobRank rank : one.ranks.ranks()) {
    if (!has(other, rank)) return MPI_UNEQUAL;
  }
  return MPI_SIMILAR;
}

}  // namespace

void group_size(Group& group, int* size) { *size = size_of(group); }

void group_rank(Group& group, int* rank) {
  const std::optional<Rank> mine = group.ranks.position(Process::current()->job().rank());
  *rank = mine ? mine->value() : static_cast<int>(MPI_UNDEFINED);
}

void group_free(MPI_Group* group) {
  Group* const object = find(*group);
  if (object == nullptr) fail_handle(MPI_ERR_GROUP, "group", "group", *group);
  // Programs free every group that the functions below return, empty ones, too.
  const bool is_predefined = *group == MPI_GROUP_EMPTY;
  *group = MPI_GROUP_NULL;
  if (!is_predefined) Ref<Group>::adopt(object);
}

void group_compare(Group& group1, Group& group2, int* result) { *result = compare(group1, group2); }

void group_translate_ranks(Group& group1, int n, const int* ranks1, Group& group2, int* ranks2) {
  check_count(n);
  for (int i = 0; i < n; ++i) {
    if (ranks1[i] == MPI_PROC_NULL) {
      ranks2[i] = MPI_PROC_NULL;
      continue;
    }
    check_rank(group1, ranks1[i], "ranks1", i);
    const std::optional<Rank> found = group2.ranks.position(at(group1, ranks1[i]));
    ranks2[i] = found ? found->value() : static_cast<int>(MPI_UNDEFINED);
  }
}

void group_incl(Group& group, int n, const int* ranks, MPI_Group* newgroup) {
  *newgroup = make(choose(group, n, ranks).in_order(), group);
}
void group_excl(Group& group, int n, const int* ranks, MPI_Group* newgroup) {
  *newgroup = make(choose(group, n, ranks).others(), group);
}
void group_range_incl(Group& group, int n, int (*ranges)[3], MPI_Group* newgroup) {
  *newgroup = make(choose(group, n, ranges).in_order(), group);
}
void group_range_excl(Group& group, int n, int (*ranges)[3], MPI_Group* newgroup) {
  *newgroup = make(choose(group, n, ranges).others(), group);
}

void group_union(Group& group1, Group& group2, MPI_Group* newgroup) {
  std::vector<JobRank> ranks = group1.ranks.ranks();
  append(ranks, group2, group1, false);
  *newgroup = make(std::move(ranks), group1, group2);
}
void group_intersection(Group& group1, Group& group2, MPI_Group* newgroup) {
  std::vector<JobRank> ranks;
  append(ranks, group1, group2, true);
  *newgroup = make(std::move(ranks), group1, group2);
}
void group_difference(Group& group1, Group& group2, MPI_Group* newgroup) {
  std::vector<JobRank> ranks;
  append(ranks, group1, group2, false);
  *newgroup = make(std::move(ranks), group1, group2);
}

}  // namespace tonari::mpi
