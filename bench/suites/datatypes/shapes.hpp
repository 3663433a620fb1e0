#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

namespace tonari::bench::datatypes {

// Parts of data structures with gaps between them. Each has an MPI datatype, and is packed and unpacked by the loop
// that a program would have. The number of bytes is a power of two, at least bytes_min.

inline constexpr std::size_t bytes_min = 64;
inline constexpr std::size_t across = 16;  // elements of the dimension of which one is taken

/// A datatype that is freed at the end.
class Type {
 public:
  explicit Type(MPI_Datatype type) : type_(type) { MPI_Type_commit(&type_); }
  Type(Type&&) = delete;
  ~Type() { MPI_Type_free(&type_); }
  [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }

 private:
  MPI_Datatype type_;
};

/// One column of a matrix of doubles that is stored by rows.
class Column {
 public:
  static constexpr const char* name = "column";

  explicit Column(std::size_t bytes) : rows_(bytes / sizeof(double)), matrix_(rows_ * across), type_(make(rows_)) {}

  [[nodiscard]] std::span<std::byte> memory() { return std::as_writable_bytes(std::span(matrix_)); }
  [[nodiscard]] MPI_Datatype type() const { return type_.get(); }
  [[nodiscard]] static int count() { return 1; }

  void pack(std::span<double> packed) const {
    for (std::size_t row = 0; row < rows_; ++row) packed[row] = matrix_[row * across];
  }
  void unpack(std::span<const double> packed) {
    for (std::size_t row = 0; row < rows_; ++row) matrix_[row * across] = packed[row];
  }

 private:
  static MPI_Datatype make(std::size_t rows) {
    MPI_Datatype type;
    MPI_Type_vector(static_cast<int>(rows), 1, across, MPI_DOUBLE, &type);
    return type;
  }

  std::size_t rows_;
  std::vector<double> matrix_;
  Type type_;
};

/// A face of a box of doubles, at one place of the middle dimension: rows with gaps between them.
class Face {
 public:
  static constexpr const char* name = "face";

  explicit Face(std::size_t bytes)
      : columns_(std::size_t{1} << (std::bit_width(bytes / sizeof(double)) - 1) / 2),
        planes_(bytes / sizeof(double) / columns_),
        box_(planes_ * across * columns_),
        type_(make(planes_, columns_)) {}

  [[nodiscard]] std::span<std::byte> memory() { return std::as_writable_bytes(std::span(box_)); }
  [[nodiscard]] MPI_Datatype type() const { return type_.get(); }
  [[nodiscard]] static int count() { return 1; }

  void pack(std::span<double> packed) const {
    for (std::size_t plane = 0; plane < planes_; ++plane) {
      std::copy_n(&box_[first_of(plane)], columns_, &packed[plane * columns_]);
    }
  }
  void unpack(std::span<const double> packed) {
    for (std::size_t plane = 0; plane < planes_; ++plane) {
      std::copy_n(&packed[plane * columns_], columns_, &box_[first_of(plane)]);
    }
  }

 private:
  static constexpr int row = 1;  // the place of the face in the middle dimension

  [[nodiscard]] std::size_t first_of(std::size_t plane) const { return (plane * across + row) * columns_; }
  static MPI_Datatype make(std::size_t planes, std::size_t columns) {
    const int depth = static_cast<int>(planes);
    const int width = static_cast<int>(columns);
    const std::array<int, 3> sizes{depth, across, width};
    const std::array<int, 3> subsizes{depth, 1, width};
    const std::array<int, 3> starts{0, row, 0};
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE, &type);
    return type;
  }

  std::size_t columns_;
  std::size_t planes_;
  std::vector<double> box_;
  Type type_;
};

/// An array of structs, of which one member is not sent.
class Structs {
 public:
  static constexpr const char* name = "structs";

  explicit Structs(std::size_t bytes) : particles_(bytes / sizeof(Sent)), type_(make()) {}

  [[nodiscard]] std::span<std::byte> memory() { return std::as_writable_bytes(std::span(particles_)); }
  [[nodiscard]] MPI_Datatype type() const { return type_.get(); }
  [[nodiscard]] int count() const { return static_cast<int>(particles_.size()); }

  void pack(std::span<double> packed) const {
    auto* const sent = reinterpret_cast<Sent*>(packed.data());
    for (std::size_t i = 0; i < particles_.size(); ++i) {
      sent[i] = {particles_[i].position, particles_[i].number, particles_[i].kind};
    }
  }
  void unpack(std::span<const double> packed) {
    const auto* const sent = reinterpret_cast<const Sent*>(packed.data());
    for (std::size_t i = 0; i < particles_.size(); ++i) {
      particles_[i].position = sent[i].position;
      particles_[i].number = sent[i].number;
      particles_[i].kind = sent[i].kind;
    }
  }

 private:
  struct Particle {
    std::array<double, 3> position;
    double own;  // not sent
    int number;
    int kind;
  };
  struct Sent {
    std::array<double, 3> position;
    int number;
    int kind;
  };

  static MPI_Datatype make() {
    const std::array<int, 2> lengths{3, 2};
    const std::array<MPI_Aint, 2> places{offsetof(Particle, position), offsetof(Particle, number)};
    const std::array<MPI_Datatype, 2> types{MPI_DOUBLE, MPI_INT};
    MPI_Datatype members;
    MPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), &members);
    MPI_Datatype type;
    MPI_Type_create_resized(members, 0, sizeof(Particle), &type);
    MPI_Type_free(&members);
    return type;
  }

  std::vector<Particle> particles_;
  Type type_;
};

}  // namespace tonari::bench::datatypes
