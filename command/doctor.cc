// doctor.cc: `magpie doctor`: says in words what hurts. A process is watched for some seconds:
// its trace, what the kernel says of its quota, and its threads.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include "analysis/report.h"
#include "command/commands.h"
#include "command/debug_client.h"
#include "command/process.h"
#include "command/trace_file.h"
#include "cpus/quota.h"

namespace magpie::command {

namespace {

using analysis::Finding;

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/magpie-XXXXXX";
    const int file = mkstemp(path_.data());
    if (file < 0) throw Failure(path_ + ": cannot be made");
    close(file);
    std::ofstream out(path_, std::ios::binary);
    out << bytes;
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<Finding> examine_file(const std::string& path) {
  const ReadTrace trace = read_trace(path);
  std::vector<Finding> findings =
      analysis::examine(trace.summary, [&](std::uint64_t pc) { return trace.symbols->text(pc); });
  if (!trace.info.is_whole)
    findings.push_back({Finding::Weight::note, "damaged",
                        "The trace was not ended properly, or bytes of it are damaged.",
                        std::to_string(trace.summary.events) + " events could be read",
                        "Do not trust the findings above: what explains them may be missing."});
  return findings;
}

// A trace may say it already.
void examine_quota(cpus::QuotaReader& quota, std::vector<Finding>& findings) {
  if (std::ranges::any_of(findings, [](const Finding& f) { return f.id == "quota"; })) return;
  const double cpus = quota.read().value_or(0);
  const cpus::Throttling seen = quota.throttling();
  const auto found =
      analysis::finding_of({.periods = seen.periods,
                            .throttled_periods = seen.throttled_periods,
                            .throttled_ns = static_cast<std::int64_t>(seen.throttled_ns),
                            .quota = cpus},
                           0);
  if (found) findings.push_back(*found);
}

void examine_threads(int pid, std::vector<Finding>& findings) {
  const int threads = threads_of(pid);
  const auto cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= 8 * cpus + 64) return;
  findings.push_back(
      {Finding::Weight::warning, "many-threads", "The process has many threads.",
       std::to_string(threads) + " threads for " + std::to_string(cpus) + " CPUs",
       "Goroutines in blocking calls need a thread each. Limit them with a magpie::Semaphore "
       "or a WorkerPool."});
}

}  // namespace

int doctor(const DoctorOptions& options) {
  std::vector<Finding> findings;
  bool was_traced = true;
  const bool is_number = options.target.find_first_not_of("0123456789") == std::string::npos;
  const bool is_url = options.target.compare(0, 7, "http://") == 0;
  if (!is_url && (!is_number || access(options.target.c_str(), F_OK) == 0)) {
    findings = examine_file(options.target);
  } else {
    const DebugClient client(options.target, options.token);
    const int pid = client.pid();
    if (pid != 0) require_process(pid);
    std::optional<cpus::QuotaReader> quota;
    if (pid != 0) quota = cpus::QuotaReader::of_process(pid);
    was_traced = client.answers();
    if (was_traced) {
      const TemporaryFile trace(
          client.get("/debug/trace?seconds=" + std::to_string(options.seconds)));
      findings = examine_file(trace.path());
    } else if (pid == 0) {
      throw Failure(options.target + ": nothing listens there");
    } else {
      std::printf(
          "The process does not call magpie::debug::serve(), so only the kernel is asked.\n");
      std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::seconds(options.seconds));
      require_process(pid);
    }
    if (pid != 0) {
      examine_quota(*quota, findings);
      examine_threads(pid, findings);
    }
  }
  if (!was_traced && findings.empty())
    std::printf("The kernel sees nothing that hurts.\n");
  else
    analysis::print_findings(std::cout, findings);
  return 0;
}

}  // namespace magpie::command
