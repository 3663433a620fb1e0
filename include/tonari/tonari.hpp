#pragma once

#include <tonari/address.hpp>
#include <tonari/far.hpp>
#include <tonari/job.hpp>
#include <tonari/layout.hpp>
#include <tonari/message.hpp>
#include <tonari/queue.hpp>
#include <tonari/request.hpp>
#include <tonari/status.hpp>
#include <tonari/window.hpp>
