#include "message/rounds.hpp"

#include <algorithm>

namespace tonari::message {

void Rounds::send(std::span<const std::byte> bytes, int to) {
  rounds_.back().messages.push_back({const_cast<std::byte*>(bytes.data()), bytes.size(), to, true});
}

void Rounds::receive(std::span<std::byte> bytes, int from) {
  rounds_.back().messages.push_back({bytes.data(), bytes.size(), from, false});
}

LayoutCursor& Rounds::keep(const LayoutCursor& data) {
  layouts_.push_front(data);
  return layouts_.front();
}

void Rounds::send(const LayoutCursor& data, int to) {
  if (const auto buffer = data.dense()) return send(*buffer, to);
  rounds_.back().messages.push_back({nullptr, data.bytes(), to, true, &keep(data)});
}

void Rounds::receive(const LayoutCursor& data, int from) {
  if (const auto buffer = data.dense()) return receive(*buffer, from);
  rounds_.back().messages.push_back({nullptr, data.bytes(), from, false, &keep(data)});
}

void Rounds::fold(std::span<std::byte> into, std::span<const std::byte> from, detail::Reduction reduction) {
  rounds_.back().locals.push_back({into.data(), from.data(), into.size(), reduction});
}

void Rounds::copy(std::span<std::byte> into, std::span<const std::byte> from) {
  rounds_.back().locals.push_back({into.data(), from.data(), into.size(), {}});
}

Rounds::Local Rounds::copy_of(const LayoutCursor& into, const LayoutCursor& from) {
  const std::size_t bytes = std::min(into.bytes(), from.bytes());
  const auto dense_into = into.dense();
  const auto dense_from = from.dense();
  if (dense_into && dense_from) return {dense_into->data(), dense_from->data(), bytes, {}};
  return {nullptr, nullptr, bytes, {}, &keep(into), &keep(from)};
}

void Rounds::copy(const LayoutCursor& into, const LayoutCursor& from) {
  rounds_.back().locals.push_back(copy_of(into, from));
}

void Rounds::copy_meanwhile(const LayoutCursor& into, const LayoutCursor& from) {
  rounds_.back().meanwhile.push_back(copy_of(into, from));
}

std::span<std::byte> Rounds::scratch(std::size_t bytes) {
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  return {scratch_.back().get(), bytes};
}

}  // namespace tonari::message
