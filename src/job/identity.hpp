#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::job {

std::string this_host_name();

/// The properties that two processes must have in common to share memory. Sent in the handshake: fixed widths, no
/// padding.
struct HostIdentity {
  std::array<char, 40> boot_id{};  ///< Boot id of the running kernel, padded with zeros.
  std::uint64_t network_namespace = 0;
  std::uint64_t ipc_namespace = 0;
  std::uint32_t page_bytes = 0;
  std::uint32_t byte_order = 0x01020304;
};
static_assert(sizeof(HostIdentity) == 64);

HostIdentity this_host_identity();

/// Returns why processes with these identities cannot share memory, and the remedy; empty if they can.
std::string difference(const HostIdentity& starter, const HostIdentity& rank);

/// Writes a line to standard error with one write(). For threads that end the process afterwards.
void write_line(std::string_view line) noexcept;

}  // namespace tonari::job
