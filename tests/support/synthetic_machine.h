// synthetic_machine.h: a machine that is only a text, for the runs that begin while this lives.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace magpie::support {

class SyntheticMachine {
 public:
  // As for MAGPIE_DEBUG=topology=, say "node:2 core:16". Empty: the machine of the test.
  explicit SyntheticMachine(const std::string& levels) {
    if (levels.empty()) return;
    const char* before = std::getenv("MAGPIE_DEBUG");
    before_ = before == nullptr ? "" : before;
    setenv("MAGPIE_DEBUG",
           ("topology=" + levels + (before_->empty() ? "" : ",") + *before_).c_str(), 1);
  }
  ~SyntheticMachine() {
    if (!before_) return;
    if (before_->empty()) {
      unsetenv("MAGPIE_DEBUG");
    } else {
      setenv("MAGPIE_DEBUG", before_->c_str(), 1);
    }
  }
  SyntheticMachine(const SyntheticMachine&) = delete;
  SyntheticMachine& operator=(const SyntheticMachine&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace magpie::support
