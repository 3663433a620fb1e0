#pragma once

#include "choices.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

// Datatypes of one or more ints with known places, and buffers of them, for the tests of collectives.
namespace test {

/// A committed datatype that has `ints.size()` ints, the i-th at the byte offset ints[i].
struct Shape {
  MPI_Datatype type;
  std::vector<MPI_Aint> ints;
  MPI_Aint extent;
  MPI_Aint begin = 0;  ///< An element needs memory from here on, relative to its address, up to `end`.
  MPI_Aint end = 0;

  [[nodiscard]] int size() const { return static_cast<int>(ints.size()); }
};

inline std::vector<Shape> shapes;

/// Makes shapes of 1, 2 or 4 ints each, of which up to 7600 elements do not overlap.
inline void make_shapes() {
  shapes = {{MPI_INT, {0}, 4, 0, 4}, {MPI_2INT, {0, 4}, 8, 0, 8}};
  const auto add = [&](MPI_Datatype type, std::vector<MPI_Aint> ints, MPI_Aint extent, MPI_Aint begin, MPI_Aint end) {
    MPI_Type_commit(&type);
    shapes.push_back({type, std::move(ints), extent, begin, end});
  };
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Datatype part = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(4, MPI_INT, &type);
  add(type, {0, 4, 8, 12}, 16, 0, 16);
  MPI_Type_vector(2, 1, 3, MPI_INT, &type);
  add(type, {0, 12}, 16, 0, 16);
  // A column of a wide matrix: the next element is the next column, inside of the first one.
  constexpr int width = 7600;
  MPI_Type_vector(4, 1, width, MPI_INT, &part);
  MPI_Type_create_resized(part, 0, 4, &type);
  MPI_Type_free(&part);
  add(type, {0, 4 * width, 8 * width, 12 * width}, 4, 0, 12 * width + 4);
  // In reverse, with data in front of its address and a gap behind.
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {8, -4};
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &part);
  MPI_Type_create_resized(part, -4, 24, &type);
  MPI_Type_free(&part);
  add(type, {8, -4}, 24, -4, 20);
}

inline void free_shapes() {
  for (Shape& shape : shapes) {
    if (shape.type != MPI_INT && shape.type != MPI_2INT) MPI_Type_free(&shape.type);
  }
}

/// Returns any shape; each rank chooses by itself.
inline const Shape& any_shape() {
  return shapes[static_cast<std::size_t>(below(private_random, static_cast<int>(shapes.size())))];
}
/// Returns one whose elements do not lie inside of each other.
inline const Shape& any_separate_shape() {
  const Shape& shape = any_shape();
  return shape.extent >= shape.end - shape.begin ? shape : shapes[0];
}

/// Memory with room for elements of a shape, and the bytes expected there.
class Memory {
 public:
  /// `first`, `last`: indices of the first element and one past the last.
  Memory(const Shape& shape, MPI_Aint first, MPI_Aint last)
      : shape_(shape),
        before_(std::max<MPI_Aint>(0, -(first * shape.extent + shape.begin))),
        bytes_(static_cast<std::size_t>(before_ + std::max<MPI_Aint>(0, (last - 1) * shape.extent + shape.end) + 8),
               std::byte{0xee}),
        expected_(bytes_) {}

  /// The address of element 0.
  [[nodiscard]] void* address() { return bytes_.data() + before_; }
  /// Sets the ints of elements from `element` on, as the buffer has them now and is expected to have them.
  void set(MPI_Aint element, const std::vector<int>& values) {
    write(bytes_, element, values);
    write(expected_, element, values);
  }
  void expect(MPI_Aint element, const std::vector<int>& values) { write(expected_, element, values); }
  [[nodiscard]] bool is_as_expected() const { return bytes_ == expected_; }
  /// Makes the memory what it was, for another start of a persistent collective.
  void restore(const Memory& old) { bytes_ = old.bytes_; }

 private:
  void write(std::vector<std::byte>& bytes, MPI_Aint element, const std::vector<int>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto index = static_cast<MPI_Aint>(i) / shape_.size();
      const MPI_Aint place = (element + index) * shape_.extent + shape_.ints[i % shape_.ints.size()];
      std::memcpy(bytes.data() + before_ + place, &values[i], sizeof(int));
    }
  }

  const Shape& shape_;
  MPI_Aint before_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> expected_;
};

/// Returns the ints that one rank sends to another in a turn. All ranks compute the same.
inline std::vector<int> message(unsigned turn, int from, int to, int ints) {
  std::vector<int> values(static_cast<std::size_t>(ints));
  auto next = turn * 2654435761U + static_cast<unsigned>(from) * 40503U + static_cast<unsigned>(to) * 10007U;
  for (int& value : values) {
    next = next * 1664525U + 1013904223U;
    value = static_cast<int>(next >> 1U);
  }
  return values;
}

/// Places for elements of several ranks in one buffer, in any order, with gaps.
struct Layout {
  std::vector<int> counts;
  std::vector<int> displacements;
  int end = 0;

  /// `ints`: by rank. `unit`: places of an element.
  Layout(const std::vector<int>& ints, const Shape& shape, std::mt19937& random) {
    // Elements that lie inside of each other keep a distance.
    const auto span = static_cast<int>((shape.end - shape.begin + shape.extent - 1) / shape.extent);
    counts.resize(ints.size());
    displacements.resize(ints.size());
    std::vector<std::size_t> order(ints.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t rank : order) {
      counts[rank] = ints[rank] / shape.size();
      end += static_cast<int>(random() % 3);
      displacements[rank] = end;
      end += counts[rank] + span - 1;
    }
  }
};

/// Starts a collective in one of its three forms, and completes it.
enum class Form { blocking, started, persistent };

}  // namespace test

/// Calls MPI_Name(arguments), MPI_Iname(arguments, request) or MPI_Name_init(arguments, info, request), as `form` says.
/// `again()` is called between the starts of a persistent one.
#define COLLECTIVE(form, again, Name, Iname, ...)                             \
  do {                                                                        \
    MPI_Request request_ = MPI_REQUEST_NULL;                                  \
    switch (form) {                                                           \
      case test::Form::blocking: MPI_##Name(__VA_ARGS__); break;              \
      case test::Form::started: MPI_##Iname(__VA_ARGS__, &request_); break;   \
      case test::Form::persistent:                                            \
        MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_);             \
        for (int start_ = 0; start_ < 3; ++start_) {                          \
          if (start_ != 0) again();                                           \
          MPI_Start(&request_);                                               \
          MPI_Wait(&request_, MPI_STATUS_IGNORE);                             \
        }                                                                     \
        MPI_Request_free(&request_);                                          \
        break;                                                                \
    }                                                                         \
    if (request_ != MPI_REQUEST_NULL) MPI_Wait(&request_, MPI_STATUS_IGNORE); \
  } while (false)
