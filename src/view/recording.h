// recording.h: a trace of the running program, recorded into memory.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <magpie/context.h>

#include "view/trace_api.h"

namespace magpie::view {

// A file without a name in any directory. It is gone when the object is.
class Recording {
 public:
  // Records for that time, or until the context is cancelled: then no client waits for it. If the
  // flight recorder is on, takes what that holds instead, at once. Blocks. Throws
  // http::StatusError: 409 if something else records a trace to a file.
  Recording(std::chrono::nanoseconds time, const Context& context);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  std::string path() const;
  std::string bytes() const;

 private:
  void record(std::chrono::nanoseconds time, const Context& context);

  int descriptor_;
};

// What is in it. The recording lives as long as that.
std::shared_ptr<const TraceApi> open_recording(std::unique_ptr<Recording> recording);

}  // namespace magpie::view
