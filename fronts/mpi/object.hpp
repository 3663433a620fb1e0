#pragma once

#include "mpi.h"

#include <atomic>
#include <cstdint>

namespace tonari::mpi {

/// The first part of every object that a handle names. A handle of the standard ABI is the object's address; handles of
/// predefined objects are numbers below `first_address`, and index a table (predefined.hpp).
///
/// Life:    counted: by the handle, and by everything that refers to the object after the program has freed its handle.
/// Threads: any thread may count.
struct Object {
  explicit Object(std::uint32_t word) noexcept : magic(word) {}
  Object(Object&&) = delete;
  ~Object() {
    static_cast<volatile std::uint32_t&>(magic) = 0;  // compilers drop ordinary stores to an object that ends
  }

  void hold() noexcept {
    if (!is_permanent()) references.fetch_add(1, std::memory_order_relaxed);
  }
  /// Returns true if nothing refers to the object any more: the caller deletes it.
  [[nodiscard]] bool release() noexcept {
    if (is_permanent()) return false;
    // Acquire and release: the thread that deletes the object sees what the others did with it.
    return references.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  /// Stops counting, because counts of a predefined object would travel between the caches of threads that send at
  /// once. Its maker deletes it, or nobody.
  void make_permanent() noexcept { references.store(permanent, std::memory_order_relaxed); }
  [[nodiscard]] bool is_permanent() const noexcept {
    return references.load(std::memory_order_relaxed) == permanent;  // constant once the object is shared
  }

  static constexpr std::uint32_t permanent = ~std::uint32_t{0};
  std::uint32_t magic;  ///< Tells the kind of the object, as long as it lives. A check of handles, no guarantee.
  std::atomic<std::uint32_t> references{1};
};

inline constexpr std::uintptr_t first_address = 0x1000;

template <class Handle>
std::uintptr_t number_of(Handle handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

/// A reference to an object. Deletes it with the last one.
template <class T>
class Ref {
 public:
  Ref() = default;
  /// Adds a reference.
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_ != nullptr) object_->hold();
  }
  /// Takes over the reference that the creator of an object has.
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref& operator=(Ref other) noexcept {
    T* const mine = object_;
    object_ = other.object_;
    other.object_ = mine;
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr && object_->release()) delete object_;
  }
  [[nodiscard]] T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  /// Gives the reference away, to a handle.
  [[nodiscard]] T* take() noexcept {
    T* const object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  T* object_ = nullptr;
};

}  // namespace tonari::mpi
