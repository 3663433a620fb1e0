#include "message/matching.hpp"

#include <algorithm>

namespace tonari::message {

using fabric::Head;
using fabric::Kind;

namespace {
constexpr Kind taken{};  // the kind of a place whose head was taken
constexpr std::size_t places_worth_closing = 64;
}  // namespace

std::size_t message_bytes(const Head& head) noexcept {
  switch (head.kind) {
    case Kind::message_inline: return head.inline_bytes;
    case Kind::message_bulk: return head.as<fabric::Tail>().bytes;
    case Kind::message_announced: return head.as<fabric::Announced>().bytes;
    case Kind::kept: return head.as<Kept>().bytes;
    default: return 0;
  }
}

Matching::~Matching() {
  for (const Head& head : heads_) {
    if (head.kind == Kind::kept) delete[] head.as<Kept>().payload;
  }
}

void Matching::keep(const Head& head) {
  heads_.push_back(head);
  ++unexpected_count_;
}

std::size_t Matching::find(const Operation& operation) const noexcept {
  std::size_t place = first_;
  while (place < heads_.size() && (heads_[place].kind == taken || !matches(operation, heads_[place]))) ++place;
  return place;
}

const Head* Matching::find_unexpected(const Operation& operation) noexcept {
  if (unexpected_count_ == 0) return nullptr;
  const std::size_t place = find(operation);
  return place < heads_.size() ? &heads_[place] : nullptr;
}

Head* Matching::find_announced(std::uint32_t source, std::uint32_t ticket, std::uint32_t generation) noexcept {
  const auto found = std::ranges::find_if(heads_, [&](const Head& head) {
    if (head.kind != Kind::message_announced || head.source != source) return false;
    const auto announced = head.as<fabric::Announced>();
    return announced.ticket == ticket && announced.generation == generation;
  });
  return found == heads_.end() ? nullptr : &*found;
}

std::optional<Head> Matching::take_unexpected(const Operation& operation) noexcept {
  if (unexpected_count_ == 0) return std::nullopt;
  const std::size_t place = find(operation);
  if (place == heads_.size()) return std::nullopt;
  const Head head = heads_[place];
  remove(place);
  return head;
}

bool Matching::forget_announced(std::uint32_t source, std::uint32_t ticket, std::uint32_t generation) noexcept {
  const Head* found = find_announced(source, ticket, generation);
  if (found == nullptr) return false;
  remove(static_cast<std::size_t>(found - heads_.data()));
  return true;
}

void Matching::remove(std::size_t place) noexcept {
  heads_[place].kind = taken;
  --unexpected_count_;
  while (first_ < heads_.size() && heads_[first_].kind == taken) ++first_;
  if (first_ == heads_.size()) {
    heads_.clear();
    first_ = 0;
  } else if (heads_.size() > places_worth_closing && unexpected_count_ < heads_.size() / 2) {
    std::erase_if(heads_, [](const Head& each) { return each.kind == taken; });
    first_ = 0;
  }
}

}  // namespace tonari::message
