// ranks: 1 2
#include "check.hpp"

#include <climits>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

// Attributes: keys and how long they live, callbacks, and callbacks that fail. attribute_copies.cpp has copies.

namespace {

int deletions = 0;
std::vector<int> order;
void* last_value = nullptr;
void* last_state = nullptr;
MPI_Comm last_comm = MPI_COMM_NULL;
bool fails = false;

int note_delete(MPI_Comm comm, int, void* value, void* state) {
  if (fails) return MPI_ERR_INTERN;
  ++deletions;
  last_comm = comm;
  last_value = value;
  last_state = state;
  order.push_back(*static_cast<int*>(value));
  return MPI_SUCCESS;
}
int return_unknown_code(MPI_Comm, int, void*, void*) { return fails ? 987654 : MPI_SUCCESS; }

int predefined_value(int key) {
  int* value = nullptr;
  int flag = 0;
  CHECK_EQUAL(MPI_Comm_get_attr(MPI_COMM_WORLD, key, static_cast<void*>(&value), &flag), MPI_SUCCESS);
  CHECK_EQUAL(flag, 1);
  return *value;
}

void predefined_attributes() {
  CHECK_EQUAL(predefined_value(MPI_TAG_UB), INT_MAX);
  CHECK_EQUAL(predefined_value(MPI_UNIVERSE_SIZE), test::ranks());
  CHECK_EQUAL(predefined_value(MPI_HOST), static_cast<int>(MPI_PROC_NULL));
  CHECK_EQUAL(predefined_value(MPI_IO), static_cast<int>(MPI_ANY_SOURCE));
  CHECK_EQUAL(predefined_value(MPI_APPNUM), 0);
  const int is_global = predefined_value(MPI_WTIME_IS_GLOBAL);
  CHECK(is_global == 0 || is_global == 1);
  CHECK_EQUAL(predefined_value(MPI_LASTUSEDCODE), static_cast<int>(MPI_ERR_LASTCODE));
  int key = MPI_TAG_UB;
  CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, key, nullptr), static_cast<int>(MPI_ERR_KEYVAL));
  CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), static_cast<int>(MPI_ERR_KEYVAL));
  CHECK_EQUAL(MPI_Comm_free_keyval(&key), static_cast<int>(MPI_ERR_KEYVAL));
}

void* value_of(MPI_Comm comm, int key) {
  void* value = nullptr;
  int flag = -1;
  CHECK_EQUAL(MPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &flag), MPI_SUCCESS);
  return flag != 0 ? value : nullptr;
}

void set_get_delete() {
  int state = 0;
  int one = 1;
  int two = 2;
  int key = MPI_KEYVAL_INVALID;
  CHECK_EQUAL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &key, &state), MPI_SUCCESS);
  CHECK(key != MPI_KEYVAL_INVALID);
  CHECK(value_of(MPI_COMM_WORLD, key) == nullptr);
  CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one), MPI_SUCCESS);
  CHECK(value_of(MPI_COMM_WORLD, key) == &one);
  CHECK(value_of(MPI_COMM_SELF, key) == nullptr);
  deletions = 0;
  CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &two), MPI_SUCCESS);  // deletes the old value
  CHECK_EQUAL(deletions, 1);
  CHECK(last_value == &one);
  CHECK(last_state == &state);
  CHECK(last_comm == MPI_COMM_WORLD);
  CHECK(value_of(MPI_COMM_WORLD, key) == &two);
  CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), MPI_SUCCESS);
  CHECK_EQUAL(deletions, 2);
  CHECK(last_value == &two);
  CHECK(value_of(MPI_COMM_WORLD, key) == nullptr);
  CHECK_EQUAL(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
  CHECK_EQUAL(key, static_cast<int>(MPI_KEYVAL_INVALID));
}

void callbacks_that_fail() {
  int one = 1;
  int two = 2;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one);
  fails = true;
  CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), static_cast<int>(MPI_ERR_INTERN));
  CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &two), static_cast<int>(MPI_ERR_INTERN));
  CHECK(value_of(MPI_COMM_WORLD, key) == &one);
  fails = false;
  CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), MPI_SUCCESS);
  MPI_Comm_free_keyval(&key);

  // A code that does not exist becomes MPI_ERR_OTHER, and the text has it.
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, return_unknown_code, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &one);
  fails = true;
  const int code = MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  fails = false;
  CHECK_EQUAL(code, static_cast<int>(MPI_ERR_OTHER));
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  CHECK(std::string(text).find("987654") != std::string::npos);
  CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_SUCCESS);
  MPI_Comm_free_keyval(&key);
}

// A freed key works for the attributes that have it, and for nothing else.
void freed_keys_live_on() {
  int one = 1;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &key, nullptr);
  const int number = key;
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one);
  MPI_Comm_free_keyval(&key);
  CHECK(value_of(MPI_COMM_WORLD, number) == &one);
  key = number;
  CHECK_EQUAL(MPI_Comm_free_keyval(&key), static_cast<int>(MPI_ERR_KEYVAL));
  CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_SELF, number, &one), static_cast<int>(MPI_ERR_KEYVAL));
  int another = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &another, nullptr);
  CHECK(another != number);
  MPI_Comm_free_keyval(&another);
  deletions = 0;
  CHECK_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, number), MPI_SUCCESS);
  CHECK_EQUAL(deletions, 1);
  void* value = nullptr;
  int flag = 0;
  CHECK_EQUAL(MPI_Comm_get_attr(MPI_COMM_WORLD, number, static_cast<void*>(&value), &flag),
              static_cast<int>(MPI_ERR_KEYVAL));
}

int type_deletions = 0;
MPI_Datatype last_type = MPI_DATATYPE_NULL;
int note_type_delete(MPI_Datatype type, int, void*, void*) {
  ++type_deletions;
  last_type = type;
  return MPI_SUCCESS;
}

void of_datatypes() {
  int one = 1;
  int key = MPI_KEYVAL_INVALID;
  CHECK_EQUAL(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, note_type_delete, &key, nullptr), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Type_set_attr(MPI_INT, key, &one), MPI_SUCCESS);
  void* value = nullptr;
  int flag = 0;
  CHECK_EQUAL(MPI_Type_get_attr(MPI_INT, key, static_cast<void*>(&value), &flag), MPI_SUCCESS);
  CHECK(flag == 1 && value == &one);
  CHECK_EQUAL(MPI_Type_get_attr(MPI_DOUBLE, key, static_cast<void*>(&value), &flag), MPI_SUCCESS);
  CHECK_EQUAL(flag, 0);
  CHECK_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one), static_cast<int>(MPI_ERR_KEYVAL));  // another kind
  CHECK_EQUAL(MPI_Type_delete_attr(MPI_INT, key), MPI_SUCCESS);
  CHECK_EQUAL(type_deletions, 1);
  CHECK(last_type == MPI_INT);
  CHECK_EQUAL(MPI_Type_free_keyval(&key), MPI_SUCCESS);
}

void deprecated_functions() {
  int one = 1;
  int key = MPI_KEYVAL_INVALID;
  CHECK_EQUAL(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, nullptr), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Attr_put(MPI_COMM_WORLD, key, &one), MPI_SUCCESS);
  void* value = nullptr;
  int flag = 0;
  CHECK_EQUAL(MPI_Attr_get(MPI_COMM_WORLD, key, static_cast<void*>(&value), &flag), MPI_SUCCESS);
  CHECK(flag == 1 && value == &one);
  CHECK_EQUAL(MPI_Attr_delete(MPI_COMM_WORLD, key), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Keyval_free(&key), MPI_SUCCESS);
}

void several_threads() {
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) {
        int key = MPI_KEYVAL_INVALID;
        MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
        MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
        CHECK(value_of(MPI_COMM_WORLD, key) == &key);
        MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
        MPI_Comm_free_keyval(&key);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first, the last one set first, and fails if a callback fails.
void finalize_deletes_self() {
  static int numbers[] = {1, 2, 3};
  int keys[3];
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &keys[i], nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], &numbers[i]);
  }
  MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], &numbers[0]);  // now the last one
  order.clear();
  fails = true;
  CHECK_EQUAL(MPI_Finalize(), static_cast<int>(MPI_ERR_INTERN));
  CHECK(order.empty());
  fails = false;
  int flag = -1;
  MPI_Finalized(&flag);
  CHECK_EQUAL(flag, 0);
  CHECK_EQUAL(MPI_Finalize(), MPI_SUCCESS);
  CHECK(order == std::vector<int>({1, 3, 2}));
}

}  // namespace

int main(int argc, char** argv) {
  int early = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &early, nullptr);
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  predefined_attributes();
  set_get_delete();
  freed_keys_live_on();
  of_datatypes();
  deprecated_functions();
  several_threads();
  callbacks_that_fail();
  finalize_deletes_self();
}
