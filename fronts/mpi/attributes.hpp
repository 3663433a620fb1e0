#pragma once

#include "mpi/object.hpp"

#include <memory>
#include <vector>

namespace tonari::mpi {

struct Keyval;

/// The values that a program has attached to an object, in the order in which they were set. Threads: any; one lock
/// protects the attributes of all objects, and no callback runs under it.
struct Attributes {
  Attributes() = default;
  Attributes(Attributes&&) = delete;

  struct Value {
    std::shared_ptr<const Keyval> key;
    void* value;
  };
  std::vector<Value> values;
};

// `Handle` is MPI_Comm, MPI_Datatype or MPI_Win. The functions throw Failure if a callback returns an error.

/// Calls the copy callbacks of `from`, whose object is `original`, and gives `to` the copies. If a callback fails, the
/// copies made so far are deleted again: their delete callbacks get the handle `copy`.
template <class Handle>
void copy_attributes(const Attributes& from, Handle original, Attributes& to, Handle copy = {});

/// Calls the delete callbacks, the last attribute set first, and removes the attributes. If a callback fails, its
/// attribute and those set before remain: the object must not be freed.
template <class Handle>
void delete_attributes(Attributes& attributes, Handle object);

}  // namespace tonari::mpi
