#pragma once

#include "message/context.hpp"
#include "message/layout_cursor.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <span>

// Point-to-point messages for other layers: of plain buffers and of any layout. Ranks are ranks of the communicator.
//
// Memory:  the data stay the caller's until the request is complete; a cursor is copied, and keeps the layout's
// compiled
//          form.
// Threads: any.
// Errors:  as of the calls of Communicator: invalid (a rank or tag outside its range), no_memory, peer_gone. All are in
//          the result of the request.
// Costs:   data without gaps travel as a plain buffer does, also if they are given as a cursor.
namespace tonari::message {

/// Sends to `destination`, and waits until that is done.
Status send(Context& context, LayoutCursor& data, int destination, int tag,
            SendMode mode = SendMode::standard) noexcept;
/// Receives from `source`, as start_receive() does, and waits for the message.
Result<Envelope> receive(Context& context, LayoutCursor& data, int source, int tag) noexcept;

/// Starts a send to `destination`.
Request start_send(Context& context, std::span<const std::byte> bytes, int destination, int tag,
                   SendMode mode = SendMode::standard) noexcept;
Request start_send(Context& context, const LayoutCursor& data, int destination, int tag,
                   SendMode mode = SendMode::standard) noexcept;

/// Starts a receive from `source`. -1 stands for any source, and any tag. The message may be shorter than the data. If
/// it is longer, the result is truncated and the data are filled.
Request start_receive(Context& context, std::span<std::byte> buffer, int source, int tag) noexcept;
Request start_receive(Context& context, const LayoutCursor& data, int source, int tag) noexcept;

/// Starts the receive of a message that a matched probe has taken. If that fails with no_memory, the message can still
/// be received.
Request start_receive(Message& message, std::span<std::byte> buffer) noexcept;
Request start_receive(Message& message, const LayoutCursor& data) noexcept;

}  // namespace tonari::message
