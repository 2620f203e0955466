// trace_fuzz.cc: any bytes as a trace file. libFuzzer calls it; see tests/CMakeLists.txt.
//
// The reader reads to the end, the times that it gives never fall, and each generation can be read
// alone. The first byte chooses whether a good file header stands before the others: without it
// little is read.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "trace/format.h"
#include "trace/reader.h"

namespace {

using namespace magpie::trace;

void read_on(Reader& reader) {
  std::int64_t last_ns = 0;
  for (Event event; reader.next(event);) {
    if (event.time_ns < last_ns) {
      std::fprintf(stderr, "time goes back\n");
      std::abort();
    }
    last_ns = event.time_ns;
    for (std::uint64_t number : event.args) (void)reader.string(number);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes;
  if (data[0] != 0) {
    char header[kFileHeaderBytes];
    write_file_header(header);
    bytes.assign(header, sizeof header);
  }
  bytes.append(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string error;
  std::optional<Reader> reader = Reader::from_bytes(std::move(bytes), error);
  if (!reader) return 0;
  read_on(*reader);
  std::size_t most = 4;
  for (const GenerationRef& generation : reader->generations()) {
    if (most-- == 0) break;
    reader->seek(generation);
    read_on(*reader);
  }
  return 0;
}
