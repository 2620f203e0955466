// file.h: reads and writes whole files without keeping a processor from other goroutines.
#pragma once

#include <magpie/detail/cxx20.h>

#include <string>
#include <string_view>
#include <system_error>

#include <magpie/detail/api.h>

namespace magpie::net {

// The contents of a file. Blocks. Throws std::system_error with the path.
MAGPIE_API std::string read_file(const std::string& path);
// Without exceptions. Empty after an error.
MAGPIE_API std::string read_file(const std::string& path, std::error_code& error);

// Replaces the contents of a file, or makes the file. The old contents stay until the new ones are
// complete and on the disk: the call writes a file beside the old one and renames it. So a power
// failure leaves the old file or the new one. The new file has the mode of the old one, and its
// owner and group where the system allows that; until then only its owner may read it. A symbolic
// link stays, and its target is replaced. A device is written in place. Blocks. Throws
// std::system_error with the path: errc::is_a_directory, errc::operation_not_supported for a FIFO
// or a socket, ...; then nothing is left behind.
MAGPIE_API void write_file(const std::string& path, std::string_view contents);
MAGPIE_API void write_file(const std::string& path, std::string_view contents,
                           std::error_code& error);

}  // namespace magpie::net
