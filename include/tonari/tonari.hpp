#pragma once

#include <tonari/job.hpp>
#include <tonari/message.hpp>
#include <tonari/status.hpp>
