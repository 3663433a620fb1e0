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

// Objects of lists, trees and graphs in shared memory. tonari/share.hpp says how ranks see each other's writes.
namespace tonari {

namespace share {
class Heap;
}

/// A shared heap has too little left for what was asked. what() says which, how much it has, and what to do.
class HeapFull : public std::bad_alloc {
 public:
  explicit HeapFull(const std::string& what) : what_(what) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.what(); }

 private:
  std::runtime_error what_;  // whose copies do not throw
};

/// The same in all ranks.
struct HeapOptions {
  bool homes_move = true;  ///< As ArrayOptions::homes_move.
};

/// Shared memory from which any thread of any rank makes objects, without asking the others. Made and destroyed
/// collectively: nobody may use its objects once the first destroys it.
///
///   Node* const node = new_shared<Node>(heap, key, left, right);
///   delete_shared(heap, node);
///
/// Pointers: to its objects mean the same in all ranks, and may stand in shared memory. Where ranks are threads of one
///          process (run_as_threads) they do not; offset_of() and at() serve there, too.
/// Homes:   each rank has a part of the heap, of equal sizes, where it is home, and takes from others' parts once its
///          own is used up. What it allocates lies on pages of its own, until others free some of it: a block is used
///          again by the rank that freed it.
/// Freeing: by any rank, with the type and count it was made with, once no rank uses it; as with every write, some
///          synchronisation must say so. Where one rank only makes what another only frees, the heap is used up.
/// Sizes:   up to a rank's part, less what is used of it: what is larger belongs in a shared_array.
/// Errors:  making it throws SetupError, as of a shared_array. A full heap: HeapFull; the try_ forms answer null.
/// Misuse:  where tonari was built with assertions, freeing twice, freeing what is not of this heap, and writing what
///          was freed (found when it is used again) end the program with a line that names it; so does freeing with
///          another size, or in the middle of a block, as far as the block's place shows it; what is freed reads as
///          0xf7eef7eef7eef7ee. Else what is not of the heap is not freed, and the rest is not noticed.
/// Saving:  share::save() keeps its bytes, not what is allocated: a heap that was loaded can be read, no more.
/// Threads: any, but for construction and destruction.
class shared_heap {
 public:
  static constexpr std::size_t alignment_max = 4096;

  /// Of `bytes` in all, rounded up to whole pages of all ranks.
  shared_heap(Job& job, std::uint64_t bytes, const HeapOptions& options = {});
  shared_heap(shared_heap&&) noexcept;
  ~shared_heap();

  /// `alignment`: a power of two, up to alignment_max; else std::invalid_argument, or null. What is in the block is not
  /// defined.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 16);
  [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
  /// Size and alignment as they were asked for. Null: nothing happens.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = 16) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept;
  /// Where it lies, the same in all ranks; 0 for a null pointer, and for nothing else.
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
  constexpr std::size_t too_many = static_cast<std::size_t>(-1);  // which no heap has
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

/// Throws HeapFull, and what T's constructor throws.
template <class T, class... Arguments>
[[nodiscard]] T* new_shared(shared_heap& heap, Arguments&&... arguments) {
  void* const block = heap.allocate(sizeof(T), alignof(T));
  return detail::make_object<T>(heap, block, std::forward<Arguments>(arguments)...);
}

/// The same, but null where the heap is full.
template <class T, class... Arguments>
[[nodiscard]] T* try_new_shared(shared_heap& heap, Arguments&&... arguments) {
  void* const block = heap.try_allocate(sizeof(T), alignof(T));
  return block == nullptr ? nullptr : detail::make_object<T>(heap, block, std::forward<Arguments>(arguments)...);
}

/// Of `count` objects, made without arguments: numbers are 0. Throws HeapFull.
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
