#pragma once

#include <tonari/address.hpp>
#include <tonari/checkpoint.hpp>
#include <tonari/far.hpp>
#include <tonari/guarded.hpp>
#include <tonari/job.hpp>
#include <tonari/layout.hpp>
#include <tonari/message.hpp>
#include <tonari/queue.hpp>
#include <tonari/request.hpp>
#include <tonari/share.hpp>
#include <tonari/shared_heap.hpp>
#include <tonari/shared_matrix.hpp>
#include <tonari/shared_reduce.hpp>
#include <tonari/status.hpp>
#include <tonari/window.hpp>
