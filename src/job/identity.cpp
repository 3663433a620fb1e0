#include "job/identity.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace tonari::job {

namespace {

// Returns the number of a namespace; 0 if the kernel has no namespaces of that kind.
std::uint64_t namespace_number(const char* path) {
  struct stat status;
  return ::stat(path, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::string this_host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

HostIdentity this_host_identity() {
  HostIdentity identity;
  std::ifstream{"/proc/sys/kernel/random/boot_id"}.getline(identity.boot_id.data(), identity.boot_id.size());
  identity.network_namespace = namespace_number("/proc/self/ns/net");
  identity.ipc_namespace = namespace_number("/proc/self/ns/ipc");
  identity.page_bytes = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
  return identity;
}

std::string difference(const HostIdentity& starter, const HostIdentity& rank) {
  if (starter.byte_order != rank.byte_order) return "its byte order differs from that of `tonari run`";
  if (starter.page_bytes != rank.page_bytes) {
    return fmt::format("its pages have {} bytes, the pages of `tonari run` have {}", rank.page_bytes,
                       starter.page_bytes);
  }
  if (starter.boot_id != rank.boot_id)
    return "it runs on a different machine than `tonari run`, or in a virtual machine";
  if (starter.network_namespace != rank.network_namespace) {
    return "it is in a different network namespace than `tonari run`: start `tonari run` inside the container too";
  }
  if (starter.ipc_namespace != rank.ipc_namespace) {
    return "it is in a different IPC namespace than `tonari run`: start `tonari run` inside the container too, or give "
           "the container the host's (docker run --ipc=host)";
  }
  return {};
}

void write_line(std::string_view line) noexcept {
  std::array<char, 1024> text;
  const auto bytes = line.copy(text.data(), text.size() - 1);
  text[bytes] = '\n';
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, text.data(), bytes + 1);  // a failure could not be reported anywhere
}

}  // namespace tonari::job
