// log.h: a JSON object per line on stdout, with the id of the request that it belongs to.
#pragma once

#include <magpie/local.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace notes {

// Of the request that the goroutine works on. A goroutine that a handler starts has none, unless it
// is given one.
extern magpie::Local<std::string> request_id;

void start_logging();
void log_info(std::string_view event, nlohmann::json details = nlohmann::json::object());
void log_warning(std::string_view event, nlohmann::json details = nlohmann::json::object());
void log_error(std::string_view event, nlohmann::json details = nlohmann::json::object());
void flush_log();

}  // namespace notes
