// captured_stderr.h: what a part of a test writes to stderr. Reports of sanitizers among it are
// shown nevertheless.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace magpie::support {

class CapturedStderr {
 public:
  CapturedStderr() { testing::internal::CaptureStderr(); }
  ~CapturedStderr() {
    if (!ended_) (void)end();
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string end() {
    ended_ = true;
    std::string text = testing::internal::GetCapturedStderr();
    if (text.find("Sanitizer:") != text.npos) std::fputs(text.c_str(), stderr);
    return text;
  }

 private:
  bool ended_ = false;
};

}  // namespace magpie::support
