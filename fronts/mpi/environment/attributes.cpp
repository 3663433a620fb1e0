#include "mpi/attributes.hpp"

#include "functions.hpp"
#include "mpi/environment/error_codes.hpp"
#include "mpi/environment/keyvals.hpp"
#include "mpi/environment/predefined_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace tonari::mpi {

namespace {

template <class Handle>
struct Callbacks;
template <>
struct Callbacks<MPI_Comm> {
  static constexpr KeyKind kind = KeyKind::comm;
  using Copy = MPI_Comm_copy_attr_function;
  using Delete = MPI_Comm_delete_attr_function;
};
template <>
struct Callbacks<MPI_Datatype> {
  static constexpr KeyKind kind = KeyKind::type;
  using Copy = MPI_Type_copy_attr_function;
  using Delete = MPI_Type_delete_attr_function;
};
template <>
struct Callbacks<MPI_Win> {
  static constexpr KeyKind kind = KeyKind::win;
  using Copy = MPI_Win_copy_attr_function;
  using Delete = MPI_Win_delete_attr_function;
};

constinit std::mutex lock;  // the attributes of all objects

auto find_value(Attributes& attributes, int keyval) noexcept {
  return std::ranges::find_if(attributes.values, [keyval](const auto& each) { return each.key->number == keyval; });
}

[[noreturn]] void fail(const char* what, int keyval, int code) {
  throw Failure(is_error_code(code) ? code : static_cast<int>(MPI_ERR_OTHER),
                fmt::format("the {} callback of attribute key {} returned error {}", what, keyval, code));
}

template <class Handle>
void call_delete(Handle object, const Keyval& key, void* value) {
  if (key.remove == nullptr) return;
  auto* const remove = reinterpret_cast<typename Callbacks<Handle>::Delete*>(key.remove);
  const int code = remove(object, key.number, value, key.extra_state);
  if (code != MPI_SUCCESS) fail("delete", key.number, code);
}

// Returns whether the attribute has a copy.
template <class Handle>
bool call_copy(Handle object, const Keyval& key, void* value, void** copied) {
  const auto number = reinterpret_cast<std::uintptr_t>(key.copy);
  *copied = value;
  if (number <= 1) return number == 1;
  auto* const copy = reinterpret_cast<typename Callbacks<Handle>::Copy*>(key.copy);
  int flag = 0;
  const int code = copy(object, key.number, key.extra_state, value, static_cast<void*>(copied), &flag);
  if (code != MPI_SUCCESS) fail("copy", key.number, code);
  return flag != 0;
}

// Does nothing if there is no such attribute.
template <class Handle>
void remove_value(Attributes& attributes, Handle object, int keyval) {
  Attributes::Value removed;
  {
    const std::lock_guard guard(lock);
    const auto found = find_value(attributes, keyval);
    if (found == attributes.values.end()) return;
    removed = *found;
  }
  call_delete(object, *removed.key, removed.value);
  const std::lock_guard guard(lock);
  if (const auto found = find_value(attributes, keyval); found != attributes.values.end()) {
    attributes.values.erase(found);
  }
}

// A new value is the last one in the order of setting. The delete callback gets the old value.
template <class Handle>
void set_value(Attributes& attributes, Handle object, int keyval, void* value) {
  Key key = find_keyval(keyval, Callbacks<Handle>::kind, true);
  remove_value(attributes, object, keyval);
  const std::lock_guard guard(lock);
  attributes.values.push_back({std::move(key), value});
}

template <class Handle>
void get_value(Attributes& attributes, int keyval, void* value, int* flag) {
  if (value == nullptr) throw Failure(MPI_ERR_ARG, "attribute_val is a null pointer");
  const Key key = find_keyval(keyval, Callbacks<Handle>::kind, false);
  const std::lock_guard guard(lock);
  const auto found = find_value(attributes, keyval);
  *flag = found != attributes.values.end() ? 1 : 0;
  if (*flag != 0) *static_cast<void**>(value) = found->value;
}

template <class Handle>
void delete_value(Attributes& attributes, Handle object, int keyval) {
  const Key key = find_keyval(keyval, Callbacks<Handle>::kind, false);
  remove_value(attributes, object, keyval);
}

template <class Handle>
int make_key(typename Callbacks<Handle>::Copy* copy, typename Callbacks<Handle>::Delete* remove, void* extra_state) {
  return make_keyval(Callbacks<Handle>::kind, reinterpret_cast<AnyFunction>(copy),
                     reinterpret_cast<AnyFunction>(remove), extra_state);
}

MPI_Datatype type_handle(Datatype* type) noexcept {
  if (!type->is_predefined) return type;
  const auto found = std::ranges::find(predefined.types, type);
  return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(0x200 + (found - predefined.types.begin())));
}

}  // namespace

template <class Handle>
void copy_attributes(const Attributes& from, Handle original, Attributes& to, Handle copy) {
  std::vector<Attributes::Value> values;
  {
    const std::lock_guard guard(lock);
    values = from.values;
  }
  try {
    for (Attributes::Value& each : values) {
      void* copied = nullptr;
      if (!call_copy(original, *each.key, each.value, &copied)) continue;
      const std::lock_guard guard(lock);
      to.values.push_back({std::move(each.key), copied});
    }
  } catch (const Failure&) {
    try {
      delete_attributes(to, copy);
    } catch (const Failure&) {  // the first failure is reported
    }
    throw;
  }
}

template <class Handle>
void delete_attributes(Attributes& attributes, Handle object) {
  while (true) {
    int last = 0;
    {
      const std::lock_guard guard(lock);
      if (attributes.values.empty()) return;
      last = attributes.values.back().key->number;
    }
    remove_value(attributes, object, last);
  }
}

template void copy_attributes(const Attributes&, MPI_Comm, Attributes&, MPI_Comm);
template void copy_attributes(const Attributes&, MPI_Datatype, Attributes&, MPI_Datatype);
template void copy_attributes(const Attributes&, MPI_Win, Attributes&, MPI_Win);
template void delete_attributes(Attributes&, MPI_Comm);
template void delete_attributes(Attributes&, MPI_Datatype);
template void delete_attributes(Attributes&, MPI_Win);

void comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                        MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval, void* extra_state) {
  *comm_keyval = make_key<MPI_Comm>(comm_copy_attr_fn, comm_delete_attr_fn, extra_state);
}
void comm_free_keyval(int* comm_keyval) { free_keyval(comm_keyval, KeyKind::comm); }
void comm_set_attr(Comm& comm, int comm_keyval, void* attribute_val) {
  set_value(comm.attributes, handle_of(&comm), comm_keyval, attribute_val);
}
void comm_get_attr(Comm& comm, int comm_keyval, void* attribute_val, int* flag) {
  if (int* const value = predefined_attribute(comm_keyval); value != nullptr && attribute_val != nullptr) {
    *static_cast<void**>(attribute_val) = value;
    *flag = 1;
    return;
  }
  get_value<MPI_Comm>(comm.attributes, comm_keyval, attribute_val, flag);
}
void comm_delete_attr(Comm& comm, int comm_keyval) { delete_value(comm.attributes, handle_of(&comm), comm_keyval); }

void type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                        MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval, void* extra_state) {
  *type_keyval = make_key<MPI_Datatype>(type_copy_attr_fn, type_delete_attr_fn, extra_state);
}
void type_free_keyval(int* type_keyval) { free_keyval(type_keyval, KeyKind::type); }
void type_set_attr(Datatype& datatype, int type_keyval, void* attribute_val) {
  set_value(datatype.attributes, type_handle(&datatype), type_keyval, attribute_val);
}
void type_get_attr(Datatype& datatype, int type_keyval, void* attribute_val, int* flag) {
  get_value<MPI_Datatype>(datatype.attributes, type_keyval, attribute_val, flag);
}
void type_delete_attr(Datatype& datatype, int type_keyval) {
  delete_value(datatype.attributes, type_handle(&datatype), type_keyval);
}

void win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn, MPI_Win_delete_attr_function* win_delete_attr_fn,
                       int* win_keyval, void* extra_state) {
  *win_keyval = make_key<MPI_Win>(win_copy_attr_fn, win_delete_attr_fn, extra_state);
}
void win_free_keyval(int* win_keyval) { free_keyval(win_keyval, KeyKind::win); }
void win_set_attr(Win& win, int win_keyval, void* attribute_val) {
  set_value(win.attributes, &win, win_keyval, attribute_val);
}
void win_get_attr(Win& win, int win_keyval, void* attribute_val, int* flag) {
  get_value<MPI_Win>(win.attributes, win_keyval, attribute_val, flag);
}
void win_delete_attr(Win& win, int win_keyval) { delete_value(win.attributes, &win, win_keyval); }

void keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval, void* extra_state) {
  comm_create_keyval(copy_fn, delete_fn, keyval, extra_state);
}
void keyval_free(int* keyval) { comm_free_keyval(keyval); }
void attr_put(Comm& comm, int keyval, void* attribute_val) { comm_set_attr(comm, keyval, attribute_val); }
void attr_get(Comm& comm, int keyval, void* attribute_val, int* flag) {
  comm_get_attr(comm, keyval, attribute_val, flag);
}
void attr_delete(Comm& comm, int keyval) { comm_delete_attr(comm, keyval); }

}  // namespace tonari::mpi
