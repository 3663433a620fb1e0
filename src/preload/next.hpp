#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

// The functions behind the wrappers, one object each, called with the same arguments.
namespace tonari::preload {

/// Returns from a libc call that fails: sets errno.
template <class Answer>
Answer failed(int error, Answer answer) noexcept {
  errno = error;
  return answer;
}

class AnyNext {
 public:
  constexpr explicit AnyNext(const char* name) noexcept : name_(name) {}

  /// Returns nullptr if this libc does not have the function.
  [[nodiscard]] void* find() noexcept {
    // relaxed: libc was ready before this library
    if (void* const known = function_.load(std::memory_order_relaxed)) return known;
    void* const symbol = ::dlsym(RTLD_NEXT, name_);
    function_.store(symbol, std::memory_order_relaxed);
    return symbol;
  }

 private:
  const char* name_;
  std::atomic<void*> function_{nullptr};
};

template <class Function>
struct Next;
template <class Answer, class... Arguments>
struct Next<Answer(Arguments...)> : AnyNext {
  using AnyNext::AnyNext;
  Answer operator()(Arguments... arguments) {
    void* const symbol = find();
    if (symbol == nullptr) [[unlikely]]
      return failed(ENOSYS, Answer{});
    return reinterpret_cast<Answer (*)(Arguments...)>(symbol)(arguments...);
  }
};
template <class Answer, class... Arguments>
struct Next<Answer(Arguments...) noexcept> : Next<Answer(Arguments...)> {
  using Next<Answer(Arguments...)>::Next;
};
template <class Answer, class... Arguments>
struct Next<Answer(Arguments..., ...)> : AnyNext {
  using AnyNext::AnyNext;
  template <class... Others>
  Answer operator()(Arguments... arguments, Others... others) {
    void* const symbol = find();
    if (symbol == nullptr) [[unlikely]]
      return failed(ENOSYS, Answer{});
    return reinterpret_cast<Answer (*)(Arguments..., ...)>(symbol)(arguments..., others...);
  }
};
template <class Answer, class... Arguments>
struct Next<Answer(Arguments..., ...) noexcept> : Next<Answer(Arguments..., ...)> {
  using Next<Answer(Arguments..., ...)>::Next;
};

/// Finds all functions that TONARI_NEXT names, before the program has signal handlers and threads that fork.
void find_all_next() noexcept;

}  // namespace tonari::preload

/// Defines next::NAME. All objects are in one section, so that they can be found before their first call.
#define TONARI_NEXT(NAME)                                                                  \
  namespace tonari::preload::next {                                                        \
  [[gnu::section("tonari_next"), gnu::used]] constinit Next<decltype(::NAME)> NAME{#NAME}; \
  }
