// database.h: where notes are kept.
#pragma once

#include <magpie/context.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace notes {

// Any number of goroutines may use it at once. Its calls throw std::runtime_error, or
// std::system_error when the context is over.
class Database {
 public:
  virtual ~Database() = default;
  virtual std::int64_t add(const magpie::Context& context, const std::string& text) = 0;
  virtual std::optional<std::string> find(const magpie::Context& context, std::int64_t id) = 0;
};

// In PostgreSQL, over at most so many connections. Makes the table if there is none.
std::unique_ptr<Database> open_postgres(const std::string& where, int connections);
// For development: gone when the program ends.
std::unique_ptr<Database> keep_in_memory();

}  // namespace notes
