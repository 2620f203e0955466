// block_file.h: blocks of the trace format, written to a descriptor or to memory. Safe in a signal
// handler, but for append_block().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trace/blocks.h"
#include "trace/format.h"

namespace magpie::trace {

// A descriptor for a new file, or for a file that is emptied. -1: errno says why.
int open_to_write(const char* path);

// False: errno says why. There is no SIGPIPE.
bool write_all(int fd, const void* data, std::size_t bytes);

BlockHeader header_of(BlockType type, std::uint32_t generation, std::size_t bytes);
BlockHeader header_of(const Block& block, std::size_t bytes);

bool write_block(int fd, const BlockHeader& header, const void* payload);
void append_block(std::string& out, const BlockHeader& header, std::string_view payload);

}  // namespace magpie::trace
