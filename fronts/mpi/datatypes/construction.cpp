#include "mpi/datatypes/construction.hpp"

#include "mpi/datatypes/derived.hpp"

#include <algorithm>
#include <limits>

namespace tonari::mpi {

Construction& Construction::add(Role role, MPI_Count value) { return add(role, &value, 1); }

Construction& Construction::add(Role role, const MPI_Aint* values, MPI_Count count) {
  values_.insert(values_.end(), values, values + count);
  segments_.push_back({role, static_cast<std::size_t>(count)});
  return *this;
}

Construction& Construction::add(Role role, Counts values, MPI_Count count) {
  const std::size_t before = values_.size();
  values_.resize(before + static_cast<std::size_t>(count));
  values.copy(count, 1, values_.data() + before);
  segments_.push_back({role, static_cast<std::size_t>(count)});
  return *this;
}

Construction& Construction::add(Datatype& type) {
  types_.emplace_back(&type);
  return *this;
}

bool Construction::needs_large_counts() const noexcept {
  if (!is_large_) return false;
  const MPI_Count* value = values_.data();
  for (const Segment& segment : segments_) {
    const MPI_Count* const end = value + segment.count;
    const bool fits = segment.role == Role::address || std::all_of(value, end, [](MPI_Count each) {
                        return each >= std::numeric_limits<int>::min() && each <= std::numeric_limits<int>::max();
                      });
    if (!fits) return true;
    value = end;
  }
  return false;
}

// The kind of array in which a form of the call shows an argument. `count` means an array of large counts here.
Construction::Role Construction::shown_role(Role role, bool large) const noexcept {
  if (role == Role::integer) return role;
  if (large && is_large_) return Role::count;
  return role == Role::count ? Role::integer : role;
}

Construction::Envelope Construction::envelope(bool large) const noexcept {
  Envelope envelope;
  envelope.types = static_cast<MPI_Count>(types_.size());
  for (const Segment& segment : segments_) {
    const auto count = static_cast<MPI_Count>(segment.count);
    switch (shown_role(segment.role, large)) {
      case Role::integer: envelope.integers += count; break;
      case Role::count: envelope.counts += count; break;
      case Role::address: envelope.addresses += count; break;
    }
  }
  return envelope;
}

void Construction::write(bool large, Contents to) const {
  std::vector<Ref<Datatype>> types;
  types.reserve(types_.size());
  for (const Ref<Datatype>& type : types_) {
    types.push_back(type->is_predefined ? type : Ref<Datatype>::adopt(copy_of(*type)));
  }
  const MPI_Count* value = values_.data();
  for (const Segment& segment : segments_) {
    const MPI_Count* const end = value + segment.count;
    switch (shown_role(segment.role, large)) {
      case Role::integer:
        for (; value != end; ++value) *to.integers++ = static_cast<int>(*value);
        break;
      case Role::count: to.counts = std::copy(value, end, to.counts); break;
      case Role::address: to.addresses = std::copy(value, end, to.addresses); break;
    }
    value = end;
  }
  for (Ref<Datatype>& type : types) {
    *to.types++ = handle_of(*type);
    if (!type->is_predefined) (void)type.take();  // the program has this reference now
  }
}

}  // namespace tonari::mpi

// Types may be nested so deep that their destructors, calling each other, would overflow the stack. So the outermost
// one destroys what the others leave to it.
MPI_ABI_Datatype::~MPI_ABI_Datatype() {
  using Pending = std::vector<std::shared_ptr<const tonari::mpi::Construction>>;
  static thread_local Pending* outermost = nullptr;
  if (construction == nullptr) return;
  if (outermost != nullptr) {
    outermost->push_back(std::move(construction));
    return;
  }
  Pending pending;
  outermost = &pending;
  pending.push_back(std::move(construction));
  while (!pending.empty()) {
    const auto next = std::move(pending.back());
    pending.pop_back();
  }
  outermost = nullptr;
}
