#include "base/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <string>

namespace tonari {

std::shared_ptr<spdlog::logger> make_logger(int rank, std::string_view level) {
  auto name = rank < 0 ? std::string{"tonari"} : fmt::format("tonari[{}]", rank);
  auto logger = std::make_shared<spdlog::logger>(std::move(name), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%n: %v");
  logger->set_level(spdlog::level::from_str(std::string{level}));
  logger->set_error_handler([](const std::string&) {});  // the default handler would write to standard error too
  return logger;
}

}  // namespace tonari
