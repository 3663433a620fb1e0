#pragma once

#include <tonari/job.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

// Objects of lists, trees and graphs in shared memory. tonari/share.hpp describes how ranks see each other's writes.
namespace tonari {

namespace share {
class Heap;
}

/// A shared heap is full. Its text names the request, the memory that is left and the remedy.
class HeapFull : public std::bad_alloc {
 public:
  explicit HeapFull(const std::string& what) : what_(what) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.what(); }

 private:
  std::runtime_error what_;  // copying it does not throw
};

/// The same in all ranks.
struct HeapOptions {
  bool homes_move = true;  ///< As ArrayOptions::homes_move.
};

/// Shared memory from which any thread of any rank allocates objects, without asking other ranks. Created and destroyed
/// collectively: no rank may use its objects once the first rank destroys it.
///
///   Node* const node = new_shared<Node>(heap, key, left, right);
///   delete_shared(heap, node);
///
/// Pointers: to objects of the heap mean the same in all ranks, and may be stored in shared memory. They do not where
///           ranks are threads of one process (run_as_threads); offset_of() and at() work there, too.
/// Homes:    each rank is the home of one part of the heap; parts have equal sizes. A rank takes from other ranks'
///           parts when its own is used up. It allocates on pages of its own until other ranks free some of its blocks:
///           a block is reused by the rank that freed it.
/// Freeing:  by any rank, with the type and count of the allocation, when no rank uses the block any more. As with
///           every write, some synchronisation must order it. A heap is used up if one rank only allocates and another
///           only frees.
/// Sizes:    at most a rank's part, less the memory in use there: larger data belongs in a shared_array.
/// Errors:   creation throws SetupError, as of a shared_array. A full heap throws HeapFull; the try_ forms return null.
/// Misuse:   builds with assertions end the program, with a line that names the mistake. They find freeing twice and
///           freeing a block of another heap. They find writing to a freed block when it is reused. They find freeing
///           with another size, or in the middle of a block, as far as the block's place shows it. Freed memory reads
///           0xf7eef7eef7eef7ee. Other builds do not free a block of another heap, and do not notice the rest.
/// Saving:   share::save() keeps the heap's bytes, but not the state of its allocations: a loaded heap can only be
///           read.
/// Threads:  any, except during construction and destruction.
class shared_heap {
 public:
  static constexpr std::size_t alignment_max = 4096;

  /// `bytes` is the size of the whole heap, rounded up to whole pages of all ranks.
  shared_heap(Job& job, std::uint64_t bytes, const HeapOptions& options = {});
  shared_heap(shared_heap&&) noexcept;
  ~shared_heap();

  /// Allocates a block with undefined contents; 0 bytes count as 1. `alignment` is a power of two, up to alignment_max;
  /// otherwise allocate() throws std::invalid_argument and try_allocate() returns null. If the heap is full, HeapFull
  /// or null.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 16);
  [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
  /// Frees a block, with the size and alignment of its allocation. Does nothing for null.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = 16) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept;
  /// A number for a byte of the heap, the same in all ranks; 0 for null, and for nothing else.
  [[nodiscard]] std::uint64_t offset_of(const void* byte) const noexcept {
    return byte == nullptr ? 0 : static_cast<std::uint64_t>(static_cast<const std::byte*>(byte) - before_first());
  }
  template <class T>
  [[nodiscard]] T* at(std::uint64_t offset) const noexcept {
    return offset == 0 ? nullptr : reinterpret_cast<T*>(before_first() + offset);
  }

 private:
  [[nodiscard]] std::byte* before_first() const noexcept { return bytes().data() - alignment_max; }

  std::unique_ptr<share::Heap> heap_;
};

namespace detail {

template <class T>
constexpr void check_shared_object() noexcept {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory carries bytes: T must be trivially copyable");
  static_assert(alignof(T) <= shared_heap::alignment_max, "blocks are aligned to a page at most");
}

constexpr std::size_t bytes_of_objects(std::size_t count, std::size_t each) noexcept {
  constexpr std::size_t too_many = static_cast<std::size_t>(-1);  // more than any heap has
  return count > too_many / each ? too_many : count * each;
}

template <class T, class... Arguments>
T* make_object(shared_heap& heap, void* block, Arguments&&... arguments) {
  check_shared_object<T>();
  try {
    return ::new (block) T(std::forward<Arguments>(arguments)...);
  } catch (...) {
    heap.deallocate(block, sizeof(T), alignof(T));
    throw;
  }
}

}  // namespace detail

/// Allocates and constructs a T. Throws HeapFull, and the exceptions of T's constructor.
template <class T, class... Arguments>
[[nodiscard]] T* new_shared(shared_heap& heap, Arguments&&... arguments) {
  void* const block = heap.allocate(sizeof(T), alignof(T));
  return detail::make_object<T>(heap, block, std::forward<Arguments>(arguments)...);
}

/// The same, but returns null if the heap is full.
template <class T, class... Arguments>
[[nodiscard]] T* try_new_shared(shared_heap& heap, Arguments&&... arguments) {
  void* const block = heap.try_allocate(sizeof(T), alignof(T));
  return block == nullptr ? nullptr : detail::make_object<T>(heap, block, std::forward<Arguments>(arguments)...);
}

/// Allocates `count` objects and constructs them without arguments: numbers are 0. Throws HeapFull.
template <class T>
[[nodiscard]] std::span<T> new_shared_array(shared_heap& heap, std::size_t count) {
  detail::check_shared_object<T>();
  static_assert(std::is_nothrow_default_constructible_v<T>, "a constructor that throws would lose the block");
  auto* const first = static_cast<T*>(heap.allocate(detail::bytes_of_objects(count, sizeof(T)), alignof(T)));
  std::uninitialized_value_construct_n(first, count);
  return {first, count};
}

template <class T>
void delete_shared(shared_heap& heap, T* object) noexcept {
  heap.deallocate(object, sizeof(T), alignof(T));
}
template <class T>
void delete_shared_array(shared_heap& heap, std::span<T> objects) noexcept {
  heap.deallocate(objects.data(), objects.size_bytes(), alignof(T));
}

}  // namespace tonari
