#include "mpi/collectives/combining.hpp"

#include "mpi/datatypes/checked.hpp"
#include "mpi/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace tonari::mpi {

namespace {

[[noreturn]] void refuse(const Op& op, const Datatype& type) {
  if (op.folds == nullptr) {
    throw Failure(MPI_ERR_OP, fmt::format("op is {}, which is only for one-sided communication", op.name));
  }
  throw Failure(MPI_ERR_OP,
                fmt::format("{} cannot combine {}: use a predefined datatype for which MPI defines it, or an "
                            "operation of your own (MPI_Op_create)",
                            op.name, type.name.empty() ? "a derived datatype" : type.name));
}

// Returns the fold of a predefined operation. A duplicate of a predefined type is as good as the type.
detail::Fold fold_of(const Op& op, const Datatype& type) {
  const bool is_basic = type.is_predefined || (type.is_plain && type.signature.elements() == 1);
  const detail::Fold fold =
      op.folds != nullptr && is_basic ? (*op.folds)[static_cast<std::size_t>(type.basic)] : nullptr;
  if (fold == nullptr) refuse(op, type);
  return fold;
}

}  // namespace

void UserCall::fold(void* inout, const void* in, std::size_t count, const void* operation) {
  const auto& call = *static_cast<const UserCall*>(operation);
  MPI_Datatype handle = call.handle;
  auto* from = static_cast<std::byte*>(const_cast<void*>(in)) + call.address;
  auto* into = static_cast<std::byte*>(inout) + call.address;
  count *= call.elements;
  if (call.function.wide != nullptr) {
    auto length = static_cast<MPI_Count>(count);
    return call.function.wide(from, into, &length, &handle);
  }
  while (count != 0) {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    auto length = static_cast<int>(std::min(count, most));
    call.function.narrow(from, into, &length, &handle);
    count -= static_cast<std::size_t>(length);
    from += length * call.type->extent;
    into += length * call.type->extent;
  }
}

Combining::Combining(Op& op, Datatype& type, MPI_Count count)
    : element_bytes_(static_cast<std::size_t>(type.extent)), commutes_(op.commutes) {
  if (op.is_predefined()) {
    fold_ = fold_of(op, type);
  } else {
    call_ = {op.function, Ref<Datatype>(&type), handle_of(type), 0, 1};
    is_staged_ = !type.is_plain;
  }
  if (is_staged_) {
    stage(type, count);
  } else {
    bytes_ = data_bytes(count, element_bytes_);
  }
}

void Combining::stage(const Datatype& type, MPI_Count count) {
  const message::Layout& layout = type.layout;
  call_.address = -layout.true_lower();
  if (count == 0 || layout.size() == 0) {
    element_bytes_ = 1;
    return;
  }
  const MPI_Count span = layout.true_upper() - layout.true_lower();
  if (type.extent >= span) {
    bytes_ = data_bytes(count, element_bytes_);
    return;
  }
  const MPI_Count distance = product(count - 1, type.extent);  // to the last element
  call_.address -= std::min<MPI_Count>(0, distance);
  call_.elements = static_cast<std::size_t>(count);
  bytes_ = element_bytes_ = static_cast<std::size_t>(sum(std::abs(distance), span));
}

detail::Reduction Combining::reduction() const noexcept {
  if (fold_ != nullptr) return {fold_, element_bytes_, nullptr, detail::Into::any};
  return {UserCall::fold, element_bytes_, &call_, commutes_ ? detail::Into::any : detail::Into::right};
}

}  // namespace tonari::mpi
