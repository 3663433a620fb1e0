#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

// A model of datatypes, as plain as possible: lists of basic elements with byte offsets. Random datatypes are made
// together with their models.
namespace test {

struct Item {
  MPI_Count offset = 0;
  MPI_Count bytes = 0;
  MPI_Count external_bytes = 0;
  enum class Kind { integer, complex_double, long_double } kind = Kind::integer;
};

struct Model {
  std::vector<Item> items;
  MPI_Count lower = 0;
  MPI_Count upper = 0;
  MPI_Count alignment = 1;
  bool has_set_bounds = false;
  bool is_empty = false;  ///< No items, and no bounds that the program has set.

  [[nodiscard]] MPI_Count extent() const { return upper - lower; }
  [[nodiscard]] MPI_Count size() const {
    MPI_Count bytes = 0;
    for (const Item& item : items) bytes += item.bytes;
    return bytes;
  }
  [[nodiscard]] MPI_Count external_size() const {
    MPI_Count bytes = 0;
    for (const Item& item : items) bytes += item.external_bytes;
    return bytes;
  }
  [[nodiscard]] MPI_Count true_lower() const {
    MPI_Count first = items.empty() ? 0 : items.front().offset;
    for (const Item& item : items) first = std::min(first, item.offset);
    return first;
  }
  [[nodiscard]] MPI_Count true_upper() const {
    MPI_Count end = items.empty() ? 0 : items.front().offset + items.front().bytes;
    for (const Item& item : items) end = std::max(end, item.offset + item.bytes);
    return end;
  }
  /// The items of `count` elements.
  [[nodiscard]] std::vector<Item> repeated(MPI_Count count) const {
    std::vector<Item> all;
    for (MPI_Count i = 0; i < count; ++i) {
      for (Item item : items) {
        item.offset += i * extent();
        all.push_back(item);
      }
    }
    return all;
  }
};

struct Copy {
  MPI_Count displacement;
  const Model* model;
};

/// The type that consists of these copies, in this order.
inline Model join(const std::vector<Copy>& copies, bool is_struct) {
  Model made;
  made.is_empty = true;
  for (const Copy& copy : copies) {
    for (Item item : copy.model->items) {
      item.offset += copy.displacement;
      made.items.push_back(item);
    }
    made.alignment = std::max(made.alignment, copy.model->alignment);
    made.has_set_bounds |= copy.model->has_set_bounds;
  }
  for (const Copy& copy : copies) {
    if (copy.model->is_empty || copy.model->has_set_bounds != made.has_set_bounds) continue;
    const MPI_Count lower = copy.displacement + copy.model->lower;
    const MPI_Count upper = copy.displacement + copy.model->upper;
    made.lower = made.is_empty ? lower : std::min(made.lower, lower);
    made.upper = made.is_empty ? upper : std::max(made.upper, upper);
    made.is_empty = false;
  }
  if (is_struct && !made.has_set_bounds) {
    while (made.extent() % made.alignment != 0) ++made.upper;
  }
  return made;
}

struct Pair {
  MPI_Datatype type;
  Model model;
};

inline Pair named(MPI_Datatype type, std::vector<Item> items, MPI_Count extent, MPI_Count alignment) {
  return {type, {std::move(items), 0, extent, alignment, false, false}};
}
inline Pair named(std::size_t index) {
  using Kind = Item::Kind;
  static const Pair types[] = {
      named(MPI_BYTE, {{0, 1, 1}}, 1, 1),
      named(MPI_CHAR, {{0, 1, 1}}, 1, 1),
      named(MPI_SHORT, {{0, 2, 2}}, 2, 2),
      named(MPI_INT, {{0, 4, 4}}, 4, 4),
      named(MPI_INT, {{0, 4, 4}}, 4, 4),
      named(MPI_LONG, {{0, 8, 4}}, 8, 8),
      named(MPI_WCHAR, {{0, 4, 2}}, 4, 4),
      named(MPI_DOUBLE, {{0, 8, 8}}, 8, 8),
      named(MPI_DOUBLE, {{0, 8, 8}}, 8, 8),
      named(MPI_INTEGER16, {{0, 16, 16}}, 16, 16),
      named(MPI_C_DOUBLE_COMPLEX, {{0, 16, 16, Kind::complex_double}}, 16, 8),
      named(MPI_LONG_DOUBLE, {{0, 16, 16, Kind::long_double}}, 16, 16),
      named(MPI_FLOAT_INT, {{0, 4, 4}, {4, 4, 4}}, 8, 4),
      named(MPI_DOUBLE_INT, {{0, 8, 8}, {8, 4, 4}}, 16, 8),
      named(MPI_SHORT_INT, {{0, 2, 2}, {4, 4, 4}}, 8, 4),
      named(MPI_LONG_INT, {{0, 8, 4}, {8, 4, 4}}, 16, 8),
      named(MPI_LONG_DOUBLE_INT, {{0, 16, 16, Kind::long_double}, {16, 4, 4}}, 32, 16),
      named(MPI_2INT, {{0, 4, 4}, {4, 4, 4}}, 8, 4),
  };
  return types[index % std::size(types)];
}

/// Makes random datatypes, nested up to 5 levels, each by the constructor of a random width.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::mt19937& random() { return random_; }
  MPI_Count draw(MPI_Count first, MPI_Count last) {
    return std::uniform_int_distribution<MPI_Count>(first, last)(random_);
  }
  bool coin() { return draw(0, 1) != 0; }

  /// A type of at most about `items` items. The caller frees it, unless it is predefined.
  Pair make(int depth, MPI_Count items) {
    if (depth == 0 || items < 2) return named(static_cast<std::size_t>(draw(0, 1000)));
    switch (draw(0, 10)) {
      case 0: return contiguous(depth, items);
      case 1: return vector(depth, items, false);
      case 2: return vector(depth, items, true);
      case 3: return indexed(depth, items, false, false);
      case 4: return indexed(depth, items, true, false);
      case 5: return indexed(depth, items, false, true);
      case 6: return indexed(depth, items, true, true);
      case 7: return structure(depth, items);
      case 8: return resized(depth, items);
      case 9: return subarray(depth, items);
      default: return coin() ? darray(depth, items) : duplicate(depth, items);
    }
  }
  static void release(Pair& pair) {
    MPI_Count numbers[4];
    int combiner = 0;
    MPI_Type_get_envelope_c(pair.type, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&pair.type);
  }

 private:
  // Mostly small and often 0 or negative.
  MPI_Count shift(MPI_Count extent) { return draw(-3, 12) * (coin() ? std::max<MPI_Count>(1, extent) : 1); }
  std::vector<int> narrow(const std::vector<MPI_Count>& wide) { return {wide.begin(), wide.end()}; }

  Pair contiguous(int depth, MPI_Count items) {
    const MPI_Count count = draw(0, 5);
    Pair old = make(depth - 1, items / std::max<MPI_Count>(count, 1));
    Pair made;
    coin() ? MPI_Type_contiguous(static_cast<int>(count), old.type, &made.type)
           : MPI_Type_contiguous_c(count, old.type, &made.type);
    std::vector<Copy> copies;
    for (MPI_Count i = 0; i < count; ++i) copies.push_back({i * old.model.extent(), &old.model});
    made.model = join(copies, false);
    release(old);
    return made;
  }

  Pair vector(int depth, MPI_Count items, bool in_bytes) {
    const MPI_Count count = draw(0, 4);
    const MPI_Count block = draw(0, 4);
    Pair old = make(depth - 1, items / std::max<MPI_Count>(count * block, 1));
    const MPI_Count extent = old.model.extent();
    const MPI_Count stride = in_bytes ? shift(extent) : draw(-4, 7);
    const MPI_Count bytes = in_bytes ? stride : stride * extent;
    Pair made;
    const int n = static_cast<int>(count);
    const int b = static_cast<int>(block);
    if (in_bytes) {
      coin() ? MPI_Type_create_hvector(n, b, stride, old.type, &made.type)
             : MPI_Type_create_hvector_c(count, block, stride, old.type, &made.type);
    } else {
      coin() ? MPI_Type_vector(n, b, static_cast<int>(stride), old.type, &made.type)
             : MPI_Type_vector_c(count, block, stride, old.type, &made.type);
    }
    std::vector<Copy> copies;
    for (MPI_Count i = 0; i < count; ++i) {
      for (MPI_Count j = 0; j < block; ++j) copies.push_back({i * bytes + j * extent, &old.model});
    }
    made.model = join(copies, false);
    release(old);
    return made;
  }

  Pair indexed(int depth, MPI_Count items, bool in_bytes, bool one_length) {
    const MPI_Count count = draw(0, 6);
    Pair old = make(depth - 1, items / std::max<MPI_Count>(2 * count, 1));
    const MPI_Count extent = old.model.extent();
    std::vector<MPI_Count> lengths;
    std::vector<MPI_Count> displacements;
    MPI_Count next = 0;
    for (MPI_Count i = 0; i < count; ++i) {
      lengths.push_back(one_length && i > 0 ? lengths[0] : draw(0, 3));
      const MPI_Count step = in_bytes ? std::max<MPI_Count>(extent, 1) : 1;
      displacements.push_back(draw(0, 3) == 0 ? shift(step) : next);
      next = displacements.back() + (lengths.back() + draw(0, 2)) * step;
    }
    Pair made;
    const int n = static_cast<int>(count);
    const std::vector<int> small_lengths = narrow(lengths);
    const std::vector<int> small_displacements = narrow(displacements);
    const MPI_Count length = count == 0 ? 1 : lengths[0];
    const bool is_small = coin();
    if (in_bytes && one_length) {
      is_small ? MPI_Type_create_hindexed_block(n, static_cast<int>(length), displacements.data(), old.type, &made.type)
               : MPI_Type_create_hindexed_block_c(count, length, displacements.data(), old.type, &made.type);
    } else if (in_bytes) {
      is_small ? MPI_Type_create_hindexed(n, small_lengths.data(), displacements.data(), old.type, &made.type)
               : MPI_Type_create_hindexed_c(count, lengths.data(), displacements.data(), old.type, &made.type);
    } else if (one_length) {
      is_small
          ? MPI_Type_create_indexed_block(n, static_cast<int>(length), small_displacements.data(), old.type, &made.type)
          : MPI_Type_create_indexed_block_c(count, length, displacements.data(), old.type, &made.type);
    } else {
      is_small ? MPI_Type_indexed(n, small_lengths.data(), small_displacements.data(), old.type, &made.type)
               : MPI_Type_indexed_c(count, lengths.data(), displacements.data(), old.type, &made.type);
    }
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const MPI_Count bytes = in_bytes ? displacements[i] : displacements[i] * extent;
      for (MPI_Count j = 0; j < lengths[i]; ++j) copies.push_back({bytes + j * extent, &old.model});
    }
    made.model = join(copies, false);
    release(old);
    return made;
  }

  Pair structure(int depth, MPI_Count items) {
    const MPI_Count count = draw(0, 4);
    std::vector<Pair> olds;
    std::vector<MPI_Count> lengths;
    std::vector<MPI_Count> displacements;
    std::vector<MPI_Datatype> types;
    MPI_Count next = 0;
    for (MPI_Count i = 0; i < count; ++i) {
      olds.push_back(i > 0 && draw(0, 4) == 0 ? named(3) : make(depth - 1, items / (2 * count)));
      lengths.push_back(draw(0, 3));
      types.push_back(olds.back().type);
      const MPI_Count extent = olds.back().model.extent();
      displacements.push_back(draw(0, 4) == 0 ? shift(extent) : next);
      next = displacements.back() + lengths.back() * extent + (coin() ? 0 : draw(0, 9));
    }
    Pair made;
    const std::vector<int> small_lengths = narrow(lengths);
    coin() ? MPI_Type_create_struct(static_cast<int>(count), small_lengths.data(), displacements.data(), types.data(),
                                    &made.type)
           : MPI_Type_create_struct_c(count, lengths.data(), displacements.data(), types.data(), &made.type);
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < olds.size(); ++i) {
      for (MPI_Count j = 0; j < lengths[i]; ++j) {
        copies.push_back({displacements[i] + j * olds[i].model.extent(), &olds[i].model});
      }
    }
    made.model = join(copies, true);
    for (Pair& old : olds) release(old);
    return made;
  }

  Pair resized(int depth, MPI_Count items) {
    Pair old = make(depth - 1, items);
    const MPI_Count lower = draw(-20, 10);
    const MPI_Count extent =
        draw(0, 5) == 0 ? draw(-8, 8) : old.model.true_upper() - old.model.true_lower() + draw(0, 24);
    Pair made;
    coin() ? MPI_Type_create_resized(old.type, lower, extent, &made.type)
           : MPI_Type_create_resized_c(old.type, lower, extent, &made.type);
    made.model = old.model;
    made.model.lower = lower;
    made.model.upper = lower + extent;
    made.model.has_set_bounds = true;
    made.model.is_empty = false;
    release(old);
    return made;
  }

  Pair duplicate(int depth, MPI_Count items) {
    Pair old = make(depth - 1, items);
    Pair made{MPI_DATATYPE_NULL, old.model};
    MPI_Type_dup(old.type, &made.type);
    release(old);
    return made;
  }

  // The copies of an array's elements for which `is_mine(dimension, index)` is true, in the order of memory.
  template <class IsMine>
  static Model of_array(const Model& old, const std::vector<MPI_Count>& sizes, int order, IsMine is_mine) {
    MPI_Count elements = 1;
    for (const MPI_Count size : sizes) elements *= size;
    std::vector<Copy> copies;
    for (MPI_Count i = 0; i < elements; ++i) {
      MPI_Count rest = i;
      bool mine = true;
      for (std::size_t step = 0; step < sizes.size(); ++step) {
        const std::size_t dimension = order == MPI_ORDER_C ? sizes.size() - 1 - step : step;
        mine = mine && is_mine(dimension, rest % sizes[dimension]);
        rest /= sizes[dimension];
      }
      if (mine) copies.push_back({i * old.extent(), &old});
    }
    Model made = join(copies, false);
    made.lower = 0;
    made.upper = elements * old.extent();
    made.has_set_bounds = true;
    made.is_empty = false;
    return made;
  }

  Pair subarray(int depth, MPI_Count items) {
    const auto dimensions = static_cast<std::size_t>(draw(1, 3));
    std::vector<MPI_Count> sizes;
    std::vector<MPI_Count> parts;
    std::vector<MPI_Count> starts;
    MPI_Count selected = 1;
    for (std::size_t i = 0; i < dimensions; ++i) {
      sizes.push_back(draw(1, 4));
      parts.push_back(draw(draw(0, 9) == 0 ? 0 : 1, sizes[i]));
      starts.push_back(draw(0, sizes[i] - parts[i]));
      selected *= std::max<MPI_Count>(parts[i], 1);
    }
    Pair old = make(depth - 1, items / selected);
    const int order = coin() ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    const auto n = static_cast<int>(dimensions);
    Pair made;
    coin() ? MPI_Type_create_subarray(n, narrow(sizes).data(), narrow(parts).data(), narrow(starts).data(), order,
                                      old.type, &made.type)
           : MPI_Type_create_subarray_c(n, sizes.data(), parts.data(), starts.data(), order, old.type, &made.type);
    made.model = of_array(old.model, sizes, order, [&](std::size_t dimension, MPI_Count index) {
      return index >= starts[dimension] && index < starts[dimension] + parts[dimension];
    });
    release(old);
    return made;
  }

  Pair darray(int depth, MPI_Count items) {
    const auto dimensions = static_cast<std::size_t>(draw(1, 3));
    std::vector<MPI_Count> sizes;
    std::vector<int> kinds;
    std::vector<int> arguments;
    std::vector<int> processes;
    int all = 1;
    MPI_Count elements = 1;
    for (std::size_t i = 0; i < dimensions; ++i) {
      sizes.push_back(draw(1, 6));
      elements *= sizes[i];
      kinds.push_back(static_cast<int>(draw(MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC)));
      processes.push_back(kinds[i] == MPI_DISTRIBUTE_NONE ? 1 : static_cast<int>(draw(1, 3)));
      const MPI_Count least = kinds[i] == MPI_DISTRIBUTE_BLOCK ? (sizes[i] + processes[i] - 1) / processes[i] : 1;
      arguments.push_back(coin() ? MPI_DISTRIBUTE_DFLT_DARG : static_cast<int>(least + draw(0, 2)));
      all *= processes[i];
    }
    const auto rank = static_cast<int>(draw(0, all - 1));
    Pair old = make(depth - 1, items / elements);
    const int order = coin() ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    const auto n = static_cast<int>(dimensions);
    Pair made;
    coin() ? MPI_Type_create_darray(all, rank, n, narrow(sizes).data(), kinds.data(), arguments.data(),
                                    processes.data(), order, old.type, &made.type)
           : MPI_Type_create_darray_c(all, rank, n, sizes.data(), kinds.data(), arguments.data(), processes.data(),
                                      order, old.type, &made.type);
    std::vector<MPI_Count> place(dimensions);
    for (std::size_t i = dimensions, rest = static_cast<std::size_t>(rank); i-- > 0;) {
      place[i] = static_cast<MPI_Count>(rest % static_cast<std::size_t>(processes[i]));
      rest /= static_cast<std::size_t>(processes[i]);
    }
    made.model = of_array(old.model, sizes, order, [&](std::size_t i, MPI_Count index) {
      MPI_Count block = arguments[i];
      if (kinds[i] == MPI_DISTRIBUTE_NONE) return true;
      if (block == MPI_DISTRIBUTE_DFLT_DARG) {
        block = kinds[i] == MPI_DISTRIBUTE_CYCLIC ? 1 : (sizes[i] + processes[i] - 1) / processes[i];
      }
      return index / block % processes[i] == place[i];
    });
    release(old);
    return made;
  }

  std::mt19937 random_;
};

}  // namespace test
