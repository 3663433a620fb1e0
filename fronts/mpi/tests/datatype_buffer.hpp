#pragma once

#include "mpi/tests/datatype_model.hpp"

#include <cstdlib>
#include <cstring>

// Memory that random datatypes describe, packed and unpacked by their models.
namespace test {

using Bytes = std::vector<unsigned char>;

/// Memory for `count` elements of a type, with a margin around them.
struct Buffer {
  Buffer(const Model& model, MPI_Count count) : items(model.repeated(count)) {
    MPI_Count first = 0;
    MPI_Count end = 0;
    for (const Item& item : items) {
      first = std::min(first, item.offset);
      end = std::max(end, item.offset + item.bytes);
    }
    origin = 16 - first;
    memory.resize(static_cast<std::size_t>(origin + end + 16));
  }
  unsigned char* address() { return memory.data() + origin; }
  unsigned char* at(const Item& item) { return address() + item.offset; }

  /// Random values that external32 can represent.
  void fill(std::mt19937& random) {
    for (unsigned char& byte : memory) byte = static_cast<unsigned char>(random());
    for (const Item& item : items) {
      if (item.kind == Item::Kind::long_double) {
        const auto value = static_cast<long double>(static_cast<int>(random())) / 1024;
        std::memset(at(item), 0, sizeof value);
        std::memcpy(at(item), &value, 10);  // the rest is padding
      } else if (item.external_bytes == 4 && item.bytes == 8) {
        const auto value = static_cast<long>(static_cast<int>(random()));
        std::memcpy(at(item), &value, sizeof value);
      } else if (item.external_bytes == 2 && item.bytes == 4) {
        const auto value = static_cast<int>(random() % 0x10000);
        std::memcpy(at(item), &value, sizeof value);
      }
    }
  }
  /// No byte is named twice.
  bool is_receivable() const {
    std::vector<char> used(memory.size());
    for (const Item& item : items) {
      for (MPI_Count i = 0; i < item.bytes; ++i) {
        char& mark = used[static_cast<std::size_t>(origin + item.offset + i)];
        if (mark != 0) return false;
        mark = 1;
      }
    }
    return true;
  }
  Bytes packed() {
    Bytes all;
    for (const Item& item : items) all.insert(all.end(), at(item), at(item) + item.bytes);
    return all;
  }
  void unpack(const Bytes& from) {
    std::size_t next = 0;
    for (const Item& item : items) {
      std::memcpy(at(item), from.data() + next, static_cast<std::size_t>(item.bytes));
      next += static_cast<std::size_t>(item.bytes);
    }
  }
  // Without long doubles, which other checks look at.
  Bytes external() {
    Bytes all;
    for (const Item& item : items) {
      const auto reverse = [&](MPI_Count from, MPI_Count bytes) {
        for (MPI_Count i = bytes; i-- > 0;) all.push_back(at(item)[from + i]);
      };
      if (item.kind == Item::Kind::complex_double) {
        reverse(0, 8);
        reverse(8, 8);
      } else if (item.kind != Item::Kind::long_double) {
        reverse(0, item.external_bytes);
      }
    }
    return all;
  }
  bool has_long_doubles() const {
    return std::any_of(items.begin(), items.end(),
                       [](const Item& item) { return item.kind == Item::Kind::long_double; });
  }

  std::vector<Item> items;
  Bytes memory;
  MPI_Count origin;
};

/// A type with the same elements at other places, in memory that they do not share.
inline Pair with_same_signature(const std::vector<Item>& items, Maker& maker) {
  Model model;
  std::vector<int> lengths;
  std::vector<MPI_Aint> displacements;
  std::vector<MPI_Datatype> types;
  MPI_Count next = maker.draw(-50, 50);
  for (Item item : items) {
    item.offset = next;
    next += item.bytes + maker.draw(0, 3);
    lengths.push_back(static_cast<int>(item.bytes));
    displacements.push_back(item.offset);
    types.push_back(MPI_BYTE);
    model.items.push_back(item);
  }
  Pair pair{MPI_DATATYPE_NULL, model};
  MPI_Type_create_struct(static_cast<int>(items.size()), lengths.data(), displacements.data(), types.data(),
                         &pair.type);
  MPI_Type_commit(&pair.type);
  return pair;
}

// Bytes of memory that a few elements need.
inline MPI_Count reach(const Model& model) {
  return std::max(std::abs(model.true_lower()), std::abs(model.true_upper())) + std::abs(model.extent());
}

/// A random type of which a few elements need little memory.
inline Pair make_small(Maker& maker) {
  for (;;) {
    Pair pair = maker.make(static_cast<int>(maker.draw(1, 5)), 400);
    if (reach(pair.model) <= 20000) return pair;
    Maker::release(pair);
  }
}

}  // namespace test
