// file.h: whole files, read and written without keeping a processor from other goroutines.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace magpie::net {

// The contents of a file. Blocks. Throws std::system_error, with the path.
std::string read_file(const std::string& path);
// Without exceptions; empty after an error.
std::string read_file(const std::string& path, std::error_code& error);

// Replaces the contents of a file, or makes it. The old contents stay until the new ones are complete: they are written to
// a file beside it, which then takes its name. Blocks. Throws std::system_error, with the path; nothing is left behind.
void write_file(const std::string& path, std::string_view contents);
void write_file(const std::string& path, std::string_view contents, std::error_code& error);

}  // namespace magpie::net
