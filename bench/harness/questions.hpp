#pragma once

#include "harness/worker.hpp"
#include "wires/tonari.hpp"
#include "wires/tonari_one_sided.hpp"

namespace tonari::bench {

// What tonari-bench can be asked: one function a question, each in a file of its name.

void ask_pingpong(TonariWire& wire, const Options& options, Output& output);
void ask_match(TonariWire& wire, const Options& options, Output& output);
void ask_rate(TonariWire& wire, const Options& options, Output& output);
void ask_behind(TonariWire& wire, const Options& options, Output& output);
void ask_barrier(TonariWire& wire, const Options& options, Output& output);
void ask_broadcast(TonariWire& wire, const Options& options, Output& output);
void ask_allreduce(TonariWire& wire, const Options& options, Output& output);
void ask_alltoall(TonariWire& wire, const Options& options, Output& output);
void ask_contention(TonariWire& wire, const Options& options, Output& output);
void ask_lu(TonariWire& wire, const Options& options, Output& output);
void ask_overlap(TonariWire& wire, const Options& options, Output& output);
void ask_window(TonariOneSidedWire& wire, const Options& options, Output& output);
void ask_atomics(TonariOneSidedWire& wire, const Options& options, Output& output);
void ask_lock(TonariOneSidedWire& wire, const Options& options, Output& output);
void ask_multicast(TonariOneSidedWire& wire, const Options& options, Output& output);
void ask_register(TonariOneSidedWire& wire, const Options& options, Output& output);

/// Reads the counters of the Job, which it makes itself.
void ask_queue_depth(const Options& options);
/// They share memory through the Job, which they make themselves.
void ask_splash_fft(const Options& options);
void ask_coherence(const Options& options);
void ask_jacobi(const Options& options);
void ask_himeno(const Options& options);
void ask_sor(const Options& options);
void ask_is(const Options& options);
/// The ping-pong of the bare ring: makes its own two processes.
void ask_pingpong_of_ring(const Options& options);
/// Bare copies: make their own two processes.
void ask_window_of_memcpy(const Options& options);
void ask_window_of_process_vm(const Options& options);
/// The searches that match's question is put to, each in a single process.
void ask_match_of_heads(const Options& options);
void ask_match_of_common_buffer(const Options& options);
/// Differences between pages and their twins, by the runtime's code and by two others, each in a single process.
void ask_diff(const Options& options);
void ask_diff_of_loop(const Options& options);
void ask_diff_of_memcmp(const Options& options);

}  // namespace tonari::bench
