#pragma once

#include <tonari/job.hpp>
#include <tonari/layout.hpp>
#include <tonari/message.hpp>
#include <tonari/request.hpp>
#include <tonari/status.hpp>
