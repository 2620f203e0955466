// recorder_setup.cc: the memory, the thread, the clocks and the handlers of a recording.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/os.h"
#include "trace/block_file.h"
#include "trace/crash.h"
#include "trace/recording.h"

namespace magpie::trace {

namespace detail {
Buffer* buffers = nullptr;
}  // namespace detail

namespace recording {
namespace {

constexpr std::size_t kLeastBlocks = 64;
struct sigaction before_signal;

void on_signal(int) {
  int saved_errno = errno;
  signalled.store(true, base::relaxed);
  wake_up.set();
  errno = saved_errno;
}

bool map_blocks() {
  std::size_t count = std::max(the_recording->plan.bytes / kBlockBytes, kLeastBlocks);
  void* memory = base::os().map(nullptr, count * kBlockBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  the_recording->memory = static_cast<std::byte*>(memory);
  the_recording->block_count = count;
  for (std::size_t i = count; i-- > 0;)
    the_recording->blocks.add(new (the_recording->memory + i * kBlockBytes) Block);
  the_recording->blocks.set_when_short(the_recording->plan.flight ? Blocks::WhenShort::recycle
                                                                  : Blocks::WhenShort::refuse);
  return true;
}

bool map_buffers() {
  if (detail::buffers != nullptr) return true;
  void* memory = base::os().map(nullptr, kMostStreams * sizeof(Buffer), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  detail::buffers = static_cast<Buffer*>(memory);  // zero bytes are a Buffer that is not used yet
  return true;
}

// A short look is enough for a guess: readers compare instants that are further apart.
void read_clocks() {
  the_recording->origin = instant_now();
  the_recording->wall_ns = base::read_clock(CLOCK_REALTIME);
  Instant later;
  do {
    later = instant_now();
  } while (later.ns - the_recording->origin.ns < 1'000'000);
  auto ns = static_cast<double>(later.ns - the_recording->origin.ns);
  auto ticks = static_cast<double>(later.ticks - the_recording->origin.ticks);
  the_recording->ticks_per_second = static_cast<std::uint64_t>(ticks * 1e9 / ns);
}

std::string open_file() {
  the_recording->fd = open_to_write(the_recording->plan.path.c_str());
  if (the_recording->fd < 0) return with_reason(the_recording->plan.path);
  char header[kFileHeaderBytes];
  write_file_header(header);
  if (!write_all(the_recording->fd, header, sizeof header))
    return with_reason(the_recording->plan.path);
  the_recording->good_bytes = sizeof header;
  return {};
}

}  // namespace

std::string set_up() {
  if (!map_buffers() || !map_blocks()) return "no memory for the trace";
  if (!the_recording->plan.flight) {
    if (std::string error = open_file(); !error.empty()) return error;
  }
  signalled.store(false, base::relaxed);  // of the recording before
  if (base::os().create_thread(&the_recording->thread, nullptr, serve, nullptr) != 0)
    return "no thread for the trace";
  read_clocks();
  return {};
}

void tear_down() {
  if (the_recording->memory != nullptr)
    munmap(the_recording->memory, the_recording->block_count * kBlockBytes);
  if (the_recording->fd >= 0) close(the_recording->fd);
  delete std::exchange(the_recording, nullptr);
}

void take_signals() {
  const Plan& plan = the_recording->plan;
  if (plan.signal != 0) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(plan.signal, &action, &before_signal);
  }
  if (plan.on_crash && !plan.path.empty()) install_crash_handlers(write_last_words);
}

void give_back_signals() {
  remove_crash_handlers();
  if (the_recording->plan.signal != 0)
    sigaction(the_recording->plan.signal, &before_signal, nullptr);
}

}  // namespace recording
}  // namespace magpie::trace
