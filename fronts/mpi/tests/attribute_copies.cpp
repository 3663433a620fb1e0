// ranks: 1 2
#include "check.hpp"

#include <vector>

// Attributes when communicators and datatypes are duplicated and freed.

namespace {

int copies = 0;
int fails_at = -1;  // the copy with this number fails
std::vector<void*> deleted;
bool delete_fails = false;

// Copies an int to the one behind it.
template <class Handle>
int copy_next(Handle, int, void*, void* value, void* copied, int* flag) {
  if (copies++ == fails_at) return MPI_ERR_INTERN;
  *static_cast<void**>(copied) = static_cast<int*>(value) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
template <class Handle>
int refuse_copy(Handle, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
template <class Handle>
int note_delete(Handle, int, void* value, void*) {
  if (delete_fails) return MPI_ERR_INTERN;
  deleted.push_back(value);
  return MPI_SUCCESS;
}

void* value_of(MPI_Comm comm, int key) {
  void* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &flag);
  return flag != 0 ? value : nullptr;
}

void communicators() {
  int numbers[] = {1, 2};
  int by_callback = MPI_KEYVAL_INVALID;
  int refused = MPI_KEYVAL_INVALID;
  int by_value = MPI_KEYVAL_INVALID;
  int not_copied = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_next<MPI_Comm>, note_delete<MPI_Comm>, &by_callback, nullptr);
  MPI_Comm_create_keyval(refuse_copy<MPI_Comm>, note_delete<MPI_Comm>, &refused, nullptr);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &by_value, nullptr);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &not_copied, nullptr);
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  for (const int key : {by_callback, refused, by_value, not_copied}) MPI_Comm_set_attr(parent, key, &numbers[0]);

  MPI_Comm child = MPI_COMM_NULL;
  CHECK_EQUAL(MPI_Comm_dup(parent, &child), MPI_SUCCESS);
  CHECK(value_of(child, by_callback) == &numbers[1]);
  CHECK(value_of(child, refused) == nullptr);
  CHECK(value_of(child, by_value) == &numbers[0]);
  CHECK(value_of(child, not_copied) == nullptr);

  // A delete callback that fails keeps the communicator.
  delete_fails = true;
  CHECK_EQUAL(MPI_Comm_free(&child), static_cast<int>(MPI_ERR_INTERN));
  delete_fails = false;
  CHECK(child != MPI_COMM_NULL);
  CHECK_EQUAL(MPI_Comm_free(&child), MPI_SUCCESS);
  CHECK(deleted == std::vector<void*>({&numbers[1]}));
  CHECK_EQUAL(MPI_Comm_free(&parent), MPI_SUCCESS);
  CHECK(deleted == std::vector<void*>({&numbers[1], &numbers[0], &numbers[0]}));
  for (int* const key : {&by_callback, &refused, &by_value, &not_copied}) MPI_Comm_free_keyval(key);
}

// If the second copy fails, the first one is deleted again.
void copies_that_fail() {
  int numbers[] = {1, 2, 3};
  int keys[2];
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_create_keyval(copy_next<MPI_Comm>, note_delete<MPI_Comm>, &keys[i], nullptr);
    MPI_Comm_set_attr(parent, keys[i], &numbers[i]);
  }
  copies = 0;
  fails_at = 1;
  deleted.clear();
  MPI_Comm child = MPI_COMM_NULL;
  CHECK_EQUAL(MPI_Comm_dup(parent, &child), static_cast<int>(MPI_ERR_INTERN));
  CHECK(child == MPI_COMM_NULL);
  CHECK(deleted == std::vector<void*>({&numbers[1]}));
  fails_at = -1;
  CHECK_EQUAL(MPI_Comm_dup(parent, &child), MPI_SUCCESS);  // the parent still works
  MPI_Comm_free(&child);
  MPI_Comm_free(&parent);
  for (int& key : keys) MPI_Comm_free_keyval(&key);
}

void datatypes() {
  int numbers[] = {1, 2};
  int key = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(copy_next<MPI_Datatype>, note_delete<MPI_Datatype>, &key, nullptr);
  MPI_Datatype parent = MPI_DATATYPE_NULL;
  MPI_Type_dup(MPI_INT, &parent);
  MPI_Type_set_attr(parent, key, &numbers[0]);
  MPI_Datatype child = MPI_DATATYPE_NULL;
  CHECK_EQUAL(MPI_Type_dup(parent, &child), MPI_SUCCESS);
  void* value = nullptr;
  int flag = 0;
  MPI_Type_get_attr(child, key, static_cast<void*>(&value), &flag);
  CHECK(flag == 1 && value == &numbers[1]);
  deleted.clear();
  delete_fails = true;
  CHECK_EQUAL(MPI_Type_free(&child), static_cast<int>(MPI_ERR_INTERN));
  delete_fails = false;
  CHECK_EQUAL(MPI_Type_free(&child), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Type_free(&parent), MPI_SUCCESS);
  CHECK(deleted == std::vector<void*>({&numbers[1], &numbers[0]}));
  copies = 0;
  fails_at = 0;
  MPI_Type_dup(MPI_INT, &parent);
  MPI_Type_set_attr(parent, key, &numbers[0]);
  child = MPI_DATATYPE_NULL;
  CHECK_EQUAL(MPI_Type_dup(parent, &child), static_cast<int>(MPI_ERR_INTERN));
  CHECK(child == MPI_DATATYPE_NULL);
  fails_at = -1;
  MPI_Type_free(&parent);
  MPI_Type_free_keyval(&key);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  communicators();
  copies_that_fail();
  datatypes();
  MPI_Finalize();
}
