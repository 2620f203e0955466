#include "log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace notes {

magpie::Local<std::string> request_id;

namespace {

void write(spdlog::level::level_enum level, std::string_view event, nlohmann::json details) {
  details["event"] = event;
  if (!request_id->empty()) details["request"] = *request_id;
  // replace: what a client sent need not be UTF-8.
  spdlog::log(level, "{}", details.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

// spdlog locks a std::mutex while it writes a line. That is all right in goroutines: the lock is
// held for a moment, and never over a wait.
void start_logging() {
  spdlog::set_default_logger(spdlog::stdout_logger_mt("notes"));
  spdlog::set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","log":%v})");
  spdlog::flush_on(spdlog::level::warn);
}

void log_info(std::string_view event, nlohmann::json details) {
  write(spdlog::level::info, event, std::move(details));
}
void log_warning(std::string_view event, nlohmann::json details) {
  write(spdlog::level::warn, event, std::move(details));
}
void log_error(std::string_view event, nlohmann::json details) {
  write(spdlog::level::err, event, std::move(details));
}
void flush_log() { spdlog::default_logger()->flush(); }

}  // namespace notes
