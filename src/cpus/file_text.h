// file_text.h: reads a small kernel file whole, and tells "not there" from "cannot look now".
//
// The difference matters to a quota: a file that is gone lifts a limit, but a process that has run
// out of file descriptors has lost nothing but its sight, and must not change its mind about its
// CPUs.

#pragma once

#include <string>

namespace magpie::cpus {

enum class FileRead {
  read,       // the text is complete
  missing,    // there is no such file, or it is not for us
  try_later,  // out of descriptors or memory: nothing is known about the file
};

// Replaces `text` by the content of the file at `path`. Keeps the capacity of `text`, so reading
// the same file again into the same string does not allocate. After any result but `read`, `text`
// is empty.
[[nodiscard]] FileRead read_text(const std::string& path, std::string& text);

}  // namespace magpie::cpus
