#pragma once

#include <memory>

// The keys of attributes. Threads: any.
namespace tonari::mpi {

/// The kind of object that an attribute key is for.
enum class KeyKind { comm, type, win };

using AnyFunction = void (*)();

/// An attribute key. It lives until the program has freed it and no attribute has it. Its number is never used again.
struct Keyval {
  Keyval(int its_number, KeyKind its_kind, AnyFunction copies, AnyFunction deletes, void* state) noexcept
      : number(its_number), kind(its_kind), copy(copies), remove(deletes), extra_state(state) {}
  Keyval(Keyval&&) = delete;
  ~Keyval();

  int number;
  KeyKind kind;
  // Callbacks; `kind` tells their types. The standard gives some of them as numbers.
  AnyFunction copy;    ///< 0: the attribute is not copied. 1: its value is.
  AnyFunction remove;  ///< 0: there is nothing to do.
  void* extra_state;   ///< The program's, for the callbacks.
};
using Key = std::shared_ptr<const Keyval>;

/// Makes a key, and returns its number.
int make_keyval(KeyKind kind, AnyFunction copy, AnyFunction remove, void* extra_state);
/// Returns the key of this number, which must be of this kind. `must_be_new`: the program must not have freed it.
/// Throws Failure.
Key find_keyval(int number, KeyKind kind, bool must_be_new);
/// Frees a key, and sets its number to MPI_KEYVAL_INVALID. Throws Failure.
void free_keyval(int* number, KeyKind kind);

}  // namespace tonari::mpi
