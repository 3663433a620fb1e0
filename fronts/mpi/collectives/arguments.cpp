#include "mpi/collectives/arguments.hpp"

#include "message/inter_collectives.hpp"
#include "mpi/failure.hpp"
#include "mpi/predefined.hpp"

#include <fmt/format.h>

namespace tonari::mpi {

using message::Part;

namespace {

[[noreturn]] void refuse_in_place(const char* name) {
  throw Failure(MPI_ERR_BUFFER, fmt::format("{} is MPI_IN_PLACE, which is not allowed there on this rank", name));
}

[[noreturn]] void refuse_null(const char* name) {
  throw Failure(MPI_ERR_BUFFER, fmt::format("{} is a null pointer, and there are data to transfer", name));
}

}  // namespace

void check_root(const Comm& comm, int root) {
  if (root >= 0 && root < comm.size()) return;
  throw Failure(MPI_ERR_ROOT,
                fmt::format("root is {}: the ranks of this communicator are 0 to {}", root, comm.size() - 1));
}

int inter_root(const Comm& comm, int root) {
  if (root == MPI_ROOT) return message::self_is_root;
  if (root == MPI_PROC_NULL) return message::takes_no_part;
  if (comm.is_peer(root)) return root;
  throw Failure(MPI_ERR_ROOT,
                fmt::format("root is {}: it must be MPI_ROOT, MPI_PROC_NULL or a rank of the other group, 0 to {}",
                            root, comm.peers - 1));
}

void check_intra(const Comm& comm) {
  if (!comm.is_inter) return;
  throw Failure(MPI_ERR_COMM, "comm is an inter-communicator, on which this collective is not defined");
}

Datatype& check_type(Datatype* type, const char* name) {
  if (type == nullptr) {
    throw Failure(MPI_ERR_TYPE,
                  fmt::format("{} must be a datatype, but it is MPI_DATATYPE_NULL, or was freed, or never "
                              "made",
                              name));
  }
  if (type->is_committed) return *type;
  throw Failure(MPI_ERR_TYPE, fmt::format("{} ({}) was not committed: call MPI_Type_commit first", name,
                                          type->name.empty() ? "a derived datatype" : type->name.c_str()));
}

void check_count(MPI_Count count, const char* name, int rank) {
  if (count >= 0) return;
  const std::string which = rank < 0 ? name : fmt::format("{}s[{}]", name, rank);
  throw Failure(MPI_ERR_COUNT, fmt::format("{} is {}: it must not be negative", which, count));
}

void check_buffer(const void* buffer, MPI_Count count, const Datatype& type, const char* name) {
  if (is_in_place(buffer)) refuse_in_place(name);
  if (buffer == nullptr && type.is_plain && type.size != 0 && count > 0) refuse_null(name);
}

namespace {

const std::byte* at(const std::byte* buffer, MPI_Count bytes) noexcept {
  // Computed as a number: the buffer may be MPI_BOTTOM.
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                            static_cast<std::uintptr_t>(bytes));
}

void check_array(const Counts& array, const char* name) {
  if (array.is_null()) throw Failure(MPI_ERR_ARG, fmt::format("{} is a null pointer", name));
}

void check_counts(const Counts& counts, int ranks, const char* name) {
  if (ranks > 0) check_array(counts, fmt::format("{}s", name).c_str());
  for (int rank = 0; rank < ranks; ++rank) check_count(counts[rank], name, rank);
}

}  // namespace

Blocks::Blocks(const void* buffer, MPI_Count count, Datatype* type, const Names& names)
    : buffer_(static_cast<const std::byte*>(buffer)), count_(count), type_(check_type(type, names.type)) {
  check_buffer(buffer, count, type_, names.buffer);
  check_count(count, names.count);
}

Part Blocks::whole() const { return cursor(buffer_, count_, type_); }
Part Blocks::operator()(int rank) const { return cursor(at(buffer_, rank * count_ * type_.extent), count_, type_); }

CountedBlocks::CountedBlocks(const void* buffer, Counts counts, Counts displacements, Datatype* type, int ranks,
                             const Names& names)
    : buffer_(static_cast<const std::byte*>(buffer)),
      counts_(counts),
      displacements_(displacements),
      type_(check_type(type, names.type)) {
  if (is_in_place(buffer)) refuse_in_place(names.buffer);
  check_counts(counts, ranks, names.count);
  if (ranks > 0) check_array(displacements, "the array of displacements");
  for (int rank = 0; rank < ranks && buffer == nullptr; ++rank) {
    check_buffer(at(buffer_, displacements[rank] * type_.extent), counts[rank], type_, names.buffer);
  }
}

Part CountedBlocks::operator()(int rank) const {
  return cursor(at(buffer_, displacements_[rank] * type_.extent), counts_[rank], type_);
}

TypedBlocks::TypedBlocks(const void* buffer, Counts counts, Counts displacements, const MPI_Datatype* types, int ranks,
                         const Names& names)
    : buffer_(static_cast<const std::byte*>(buffer)), counts_(counts), displacements_(displacements), types_(types) {
  if (is_in_place(buffer)) refuse_in_place(names.buffer);
  check_counts(counts, ranks, names.count);
  if (ranks > 0) check_array(displacements, "the array of displacements");
  if (ranks > 0 && types == nullptr) throw Failure(MPI_ERR_ARG, fmt::format("{}s is a null pointer", names.type));
  for (int rank = 0; rank < ranks; ++rank) {
    (void)check_type(find(types[rank]), fmt::format("{}s[{}]", names.type, rank).c_str());
  }
}

Part TypedBlocks::operator()(int rank) const {
  return cursor(at(buffer_, displacements_[rank]), counts_[rank], *find(types_[rank]));
}

}  // namespace tonari::mpi
