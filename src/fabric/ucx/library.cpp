#include "fabric/ucx/library.hpp"

#include <tonari/status.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <list>
#include <vector>

namespace tonari::fabric::ucx {

namespace {

constexpr const char* library_name = "libucp.so.0";
constexpr const char* remedy = "install UCX 1.13 or later (Debian: libucx0)";

/// Restores the program's signal handlers in the destructor, since UCX replaces some when it is loaded.
class KeptSignals {
 public:
  KeptSignals() noexcept {
    for (int number = 1; number < NSIG; ++number) ::sigaction(number, nullptr, &at(number));
  }
  KeptSignals(KeptSignals&&) = delete;
  ~KeptSignals() {
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction now {};
      if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == at(number).sa_handler) continue;
      ::sigaction(number, &at(number), nullptr);
    }
  }

 private:
  struct sigaction& at(int number) noexcept {
    return actions_[static_cast<std::size_t>(number)];
  }

  std::array<struct sigaction, NSIG> actions_{};
};

/// The environment with settings for UCX, which reads some of them only while it is loaded. This copy lives as long as
/// the process, since other threads may read it. Changes that a thread makes to the environment meanwhile are lost.
class LoadingEnvironment {
 public:
  LoadingEnvironment() : before_(::environ) {
    const char* const level = std::getenv("TONARI_UCX_LOG_LEVEL");
    texts_ = {
        "UCX_MEM_EVENTS=no",       // otherwise it patches mmap, munmap and others; far memory moves pages below them
        "UCX_HANDLE_ERRORS=none",  // otherwise it handles SIGSEGV and others
        "UCX_VFS_ENABLE=no",       // otherwise it may start a thread
        // UCX logs to standard output, which belongs to the program. Errors are returned to tonari, which reports them.
        fmt::format("UCX_LOG_LEVEL={}", level != nullptr ? level : "fatal"),
    };
    for (std::string& text : texts_)
      entries_.push_back(text.data());  // first, so that they hide variables of the same name
    for (char** entry = before_; entry != nullptr && *entry != nullptr; ++entry) entries_.push_back(*entry);
    entries_.push_back(nullptr);
  }
  LoadingEnvironment(LoadingEnvironment&&) = delete;  // `environ` points into it

  void* open_library() noexcept {
    ::environ = entries_.data();
    void* const handle = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    ::environ = before_;
    return handle;
  }

 private:
  char** before_;
  std::vector<std::string> texts_;
  std::vector<char*> entries_;
};

void* open_library() {
  const KeptSignals kept;  // UCX replaces SIGHUP's handler whatever the settings say
  // A new copy for each attempt, since the program may have changed its environment after a failed one.
  static std::list<LoadingEnvironment> environments;
  void* const handle = environments.emplace_back().open_library();
  if (handle == nullptr) throw SetupError(fmt::format("no network: {}; {}", ::dlerror(), remedy));
  return handle;
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (function == nullptr) throw SetupError(fmt::format("no network: {} has no {}; {}", library_name, name, remedy));
}

Library load() {
  // If the program has loaded UCX already, perhaps through MPI, UCX has read these settings already.
  void* const shared = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  void* const handle = shared != nullptr ? shared : open_library();
  Library found{};
  find(handle, "ucp_get_version", found.get_version);
  find(handle, "ucp_config_read", found.config_read);
  find(handle, "ucp_config_modify", found.config_modify);
  find(handle, "ucp_config_print", found.config_print);
  find(handle, "ucp_config_release", found.config_release);
  find(handle, "ucp_init_version", found.init_version);
  find(handle, "ucp_cleanup", found.cleanup);
  find(handle, "ucp_worker_create", found.worker_create);
  find(handle, "ucp_worker_destroy", found.worker_destroy);
  find(handle, "ucp_worker_get_address", found.worker_get_address);
  find(handle, "ucp_worker_release_address", found.worker_release_address);
  find(handle, "ucp_worker_set_am_recv_handler", found.worker_set_am_recv_handler);
  find(handle, "ucp_worker_progress", found.worker_progress);
  find(handle, "ucp_worker_flush_nbx", found.worker_flush_nbx);
  find(handle, "ucp_worker_get_efd", found.worker_get_efd);
  find(handle, "ucp_worker_arm", found.worker_arm);
  find(handle, "ucp_ep_create", found.ep_create);
  find(handle, "ucp_ep_close_nbx", found.ep_close_nbx);
  find(handle, "ucp_am_send_nbx", found.am_send_nbx);
  find(handle, "ucp_am_data_release", found.am_data_release);
  find(handle, "ucp_mem_map", found.mem_map);
  find(handle, "ucp_mem_unmap", found.mem_unmap);
  find(handle, "ucp_rkey_pack", found.rkey_pack);
  find(handle, "ucp_rkey_buffer_release", found.rkey_buffer_release);
  find(handle, "ucp_ep_rkey_unpack", found.ep_rkey_unpack);
  find(handle, "ucp_rkey_destroy", found.rkey_destroy);
  find(handle, "ucp_put_nbx", found.put_nbx);
  find(handle, "ucp_get_nbx", found.get_nbx);
  find(handle, "ucp_ep_flush_nbx", found.ep_flush_nbx);
  find(handle, "ucp_request_check_status", found.request_check_status);
  find(handle, "ucp_request_free", found.request_free);
  find(handle, "ucs_status_string", found.status_string);
  return found;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void require(ucs_status_t status, const std::string& what, const char* remedy_text) {
  if (status == UCS_OK) return;
  throw SetupError(fmt::format("{}: {}; {}", what, library().status_string(status), remedy_text));
}

}  // namespace tonari::fabric::ucx
