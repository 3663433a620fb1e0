#include "mpi/datatypes/signature.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tonari::mpi {

/// Collects the parts of a list, and joins equal neighbours.
///
/// Depth: the entries of a short list take its place. A list that is nested deep already is replaced by its entries
/// too, unless it is repeated; each repetition at least halves the bytes of the lists below. So at most deep + 63 lists
/// are nested.
class Signature::ListBuilder {
 public:
  explicit ListBuilder(std::size_t parts) { parts_.reserve(parts); }
  void add(Signature part);
  Signature finish() &&;

 private:
  static constexpr std::size_t short_list = 4;
  static constexpr unsigned deep = 32;

  [[nodiscard]] static bool is_opened(const Signature& part) noexcept {
    return part.list_ != nullptr && part.times_ == 1 &&
           (part.list_->parts.size() <= short_list || part.list_->depth >= deep);
  }
  void add_part(Signature part);

  std::vector<Signature> parts_;
};

void Signature::ListBuilder::add(Signature part) {
  if (!is_opened(part)) return add_part(std::move(part));
  for (const Signature& each : part.list_->parts) add_part(each);
}

void Signature::ListBuilder::add_part(Signature part) {
  if (part.times_ == 0) return;
  if (!parts_.empty()) {
    Signature& last = parts_.back();
    if (last.list_ == part.list_ && (part.list_ != nullptr || last.element_ == part.element_)) {
      last.times_ += part.times_;
      return;
    }
  }
  parts_.push_back(std::move(part));
}

Signature Signature::ListBuilder::finish() && {
  if (parts_.empty()) return {};
  if (parts_.size() == 1) return std::move(parts_.front());
  auto list = std::make_shared<List>();
  for (const Signature& part : parts_) {
    list->bytes += part.bytes();
    list->elements += part.elements();
    list->external_bytes += part.external_bytes();
    if (part.list_ != nullptr) list->depth = std::max(list->depth, part.list_->depth + 1);
  }
  list->parts = std::move(parts_);
  Signature joined;
  joined.times_ = 1;
  joined.list_ = std::move(list);
  return joined;
}

Signature Signature::repeated(std::size_t times) const {
  if (times == 0) return {};
  Signature result = *this;
  result.times_ *= times;
  return result;
}

Signature Signature::joined(std::span<const Part> parts) {
  ListBuilder builder(parts.size());
  for (const Part& part : parts) builder.add(part.signature->repeated(part.times));
  return std::move(builder).finish();
}

std::size_t Signature::bytes_of_one() const noexcept { return list_ != nullptr ? list_->bytes : element_.bytes; }
std::size_t Signature::elements_of_one() const noexcept { return list_ != nullptr ? list_->elements : 1; }
std::size_t Signature::external_bytes_of_one() const noexcept {
  return list_ != nullptr ? list_->external_bytes : element_.external_bytes;
}

// Takes from `given`, in the measure that `of_given` returns of a signature, what belongs to whole elements of the
// signature. Returns what these elements have in the measure `of_wanted`.
template <class Given, class Wanted>
std::size_t Signature::convert(std::size_t& given, Given of_given, Wanted of_wanted) const noexcept {
  if (times_ == 0) return 0;
  const std::size_t one = of_given(*this) / times_;
  const std::size_t whole = std::min(times_, given / one);
  given -= whole * one;
  std::size_t wanted = whole * (of_wanted(*this) / times_);
  if (whole == times_ || list_ == nullptr) return wanted;
  for (const Signature& part : list_->parts) {
    const bool is_last = given < of_given(part);
    wanted += part.convert(given, of_given, of_wanted);
    if (is_last) break;
  }
  return wanted;
}

std::optional<std::size_t> Signature::elements_in(std::size_t bytes) const noexcept {
  if (times_ == 0) return bytes == 0 ? std::optional<std::size_t>{0} : std::nullopt;
  std::size_t rest = bytes % this->bytes();
  const std::size_t whole = bytes / this->bytes() * elements();
  const std::size_t partial = convert(
      rest, [](const Signature& each) { return each.bytes(); }, [](const Signature& each) { return each.elements(); });
  if (rest != 0) return std::nullopt;
  return whole + partial;
}

std::optional<std::size_t> Signature::bytes_of(std::size_t elements) const noexcept {
  if (times_ == 0) return elements == 0 ? std::optional<std::size_t>{0} : std::nullopt;
  std::size_t rest = elements % this->elements();
  std::size_t whole = 0;
  if (__builtin_mul_overflow(elements / this->elements(), bytes(), &whole)) return std::nullopt;
  const std::size_t partial = convert(
      rest, [](const Signature& each) { return each.elements(); }, [](const Signature& each) { return each.bytes(); });
  if (__builtin_add_overflow(whole, partial, &whole)) return std::nullopt;
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  return whole <= most ? std::optional(whole) : std::nullopt;
}

}  // namespace tonari::mpi
