#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::job {

std::string this_host_name();

/// What two processes must have in common to share memory. As it travels in the handshake: fixed width, no padding.
struct HostIdentity {
  std::array<char, 40> boot_id{};  ///< Of the running kernel; zeros behind its text.
  std::uint64_t network_namespace = 0;
  std::uint64_t ipc_namespace = 0;
  std::uint32_t page_bytes = 0;
  std::uint32_t byte_order = 0x01020304;
};
static_assert(sizeof(HostIdentity) == 64);

HostIdentity this_host_identity();

/// Why processes with these identities cannot share memory, and what to do; empty when they can.
std::string difference(const HostIdentity& starter, const HostIdentity& rank);

/// Writes a line to standard error in one piece. For threads that end the process afterwards.
void write_line(std::string_view line) noexcept;

}  // namespace tonari::job
