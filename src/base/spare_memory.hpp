#pragma once

#include <cstddef>
#include <new>

namespace tonari {

/// Memory of destroyed objects of type T, which later ones reuse, so that making one costs no call of the allocator.
///
/// Threads: each has its own list. An object may be destroyed by a thread that did not make it.
/// Costs:   at most spares_max blocks per thread stay allocated until the thread ends. No test whether the list is
///          constructed, because it has no destructor: see give_slow().
template <class T>
class SpareMemory {
 public:
  /// Throws std::bad_alloc.
  static void* take() {
    if (void* const memory = list.take()) return memory;
    return ::operator new (sizeof(T), std::align_val_t{alignof(T)});
  }
  static void give(void* memory) noexcept { list.give(memory); }

 private:
  static constexpr unsigned spares_max = 256;

  static void free_memory(void* memory) noexcept { ::operator delete (memory, std::align_val_t{alignof(T)}); }

  // The blocks are chained through their first words.
  struct List {
    void* first = nullptr;
    unsigned room = 0;  // blocks that it may still take in; none before its first use and at the thread's end

    void* take() noexcept {
      void* const memory = first;
      if (memory == nullptr) return nullptr;
      first = *static_cast<void**>(memory);
      ++room;
      return memory;
    }
    void give(void* memory) noexcept {
      if (room == 0) [[unlikely]]
        return give_slow(memory);
      *static_cast<void**>(memory) = first;
      first = memory;
      --room;
    }
    [[gnu::noinline]] void give_slow(void* memory) noexcept {
      // Makes room at the thread's first call, and frees the list at the thread's end.
      struct Lifetime {
        Lifetime() noexcept { list.room = spares_max; }
        Lifetime(Lifetime&&) = delete;
        ~Lifetime() {
          while (void* const spare = list.take()) free_memory(spare);
          list.room = 0;
        }
      };
      thread_local const Lifetime lifetime;
      room != 0 ? give(memory) : free_memory(memory);
    }
  };

  static inline constinit thread_local List list;
};

}  // namespace tonari
