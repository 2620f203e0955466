// debug_client.h: asks a live process: over HTTP, at the URL of debug::serve(), or at the Unix
// socket that it listens at for tools on the same machine.
#pragma once

#include <optional>
#include <string>

namespace magpie::command {

class DebugClient {
 public:
  // A process number or an http URL. Throws Failure when it is neither. An empty token: the one in
  // the URL, if there is one.
  DebugClient(const std::string& target, const std::string& token);

  int pid() const { return pid_; }  // 0: it was a URL
  // The body of the answer to a GET. Throws Failure with what went wrong.
  std::string get(const std::string& path) const;
  // Whether something listens.
  bool answers() const;

 private:
  int connect(std::string& error) const;  // a descriptor, or -1

  int pid_ = 0;
  std::string host_, port_;  // of the URL
  std::string token_;        // as it stands in a query: "token=..."; empty: none
};

}  // namespace magpie::command
