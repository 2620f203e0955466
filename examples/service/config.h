// config.h: what the environment says. The names are in README.md.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>

namespace notes {

inline std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

struct Config {
  std::string listen = from_environment("NOTES_LISTEN", "127.0.0.1:8080");
  // As libpq takes it: "host=/run/postgresql dbname=notes". Empty: notes are kept in memory.
  std::string database = from_environment("NOTES_DATABASE", "");
  int database_connections = std::stoi(from_environment("NOTES_DATABASE_CONNECTIONS", "8"));
  std::string redis_host = from_environment("NOTES_REDIS_HOST", "");  // empty: no cache
  int redis_port = std::stoi(from_environment("NOTES_REDIS_PORT", "6379"));
  std::string upstream = from_environment("NOTES_UPSTREAM", "");        // an https URL; empty: none
  std::string upstream_ca = from_environment("NOTES_UPSTREAM_CA", "");  // empty: the system's
  std::size_t max_requests = std::stoul(from_environment("NOTES_MAX_REQUESTS", "1000"));
  std::chrono::seconds request_timeout{
      std::stoi(from_environment("NOTES_REQUEST_TIMEOUT_SECONDS", "10"))};
  std::chrono::seconds grace{std::stoi(from_environment("NOTES_GRACE_SECONDS", "10"))};
};

}  // namespace notes
