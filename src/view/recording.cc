#include "view/recording.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/blocking.h>
#include <magpie/http/error.h>
#include <magpie/time.h>
#include <magpie/trace.h>

namespace magpie::view {
namespace {

// False: something records already.
bool try_start(const std::string& path) {
  try {
    trace::start(path);
    return true;
  } catch (const std::logic_error&) {
    return false;
  }
}

struct Opened {
  explicit Opened(std::unique_ptr<Recording> its)
      : recording(std::move(its)), api(recording->path()) {}
  const std::unique_ptr<Recording> recording;
  const TraceApi api;
};

}  // namespace

Recording::Recording(std::chrono::nanoseconds time, const Context& context)
    : descriptor_(memfd_create("magpie trace", MFD_CLOEXEC)) {
  if (descriptor_ < 0)
    throw std::system_error(errno, std::generic_category(), "memory for a trace");
  try {
    record(time, context);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

Recording::~Recording() { close(descriptor_); }

void Recording::record(std::chrono::nanoseconds time, const Context& context) {
  if (blocking([this] { return try_start(path()); })) {
    std::error_code cancelled;
    (void)sleep_for(time, context, cancelled);
    blocking([] { trace::stop(); });
    return;
  }
  try {
    blocking([this] { trace::snapshot(path()); });
  } catch (const std::logic_error&) {
    throw http::StatusError(409, "A trace is being recorded already.\n");
  }
}

std::string Recording::path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

std::string Recording::bytes() const {
  std::string all;
  char part[64 * 1024];
  for (ssize_t n;
       (n = pread(descriptor_, part, sizeof part, static_cast<off_t>(all.size()))) > 0;) {
    all.append(part, static_cast<std::size_t>(n));
  }
  return all;
}

std::shared_ptr<const TraceApi> open_recording(std::unique_ptr<Recording> recording) {
  auto opened = std::make_shared<const Opened>(std::move(recording));
  return {opened, &opened->api};
}

}  // namespace magpie::view
