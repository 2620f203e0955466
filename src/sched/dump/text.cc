#include "sched/dump/text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/without_sigpipe.h"
#include "sched/wait_object.h"
#include "symbol/symbols.h"

namespace magpie::sched {
namespace {

using Number = unsigned long long;

}  // namespace

void Text::flush() {
  if (length_ != 0) write_(to_, text_, length_);
  length_ = 0;
}

void Text::add(const char* format, ...) {
  if (length_ > sizeof text_ - kLongest) flush();
  va_list arguments;
  va_start(arguments, format);
  int added = std::vsnprintf(text_ + length_, kLongest, format, arguments);
  va_end(arguments);
  if (added > 0) length_ += std::min(static_cast<std::size_t>(added), kLongest - 1);
}

void Text::add_text(const char* text) {
  for (std::size_t left = std::strlen(text); left != 0;) {
    if (length_ == sizeof text_) flush();
    std::size_t now = std::min(left, sizeof text_ - length_);
    std::memcpy(text_ + length_, text, now);
    length_ += now;
    text += now;
    left -= now;
  }
}

void write_to_descriptor(void* to, const char* text, std::size_t length) {
  base::WithoutSigpipe quiet;
  while (length != 0) {
    ssize_t written = write(*static_cast<int*>(to), text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) quiet.take_it();
    if (written <= 0) return;  // nobody reads
    text += written;
    length -= static_cast<std::size_t>(written);
  }
}

const char* text(GState state) {
  switch (state) {
    case GState::fresh:
      return "fresh";
    case GState::runnable:
      return "runnable";
    case GState::running:
      return "running";
    case GState::waiting:
      return "waiting";
    case GState::free:
    case GState::ended:
      break;
  }
  return "ended";
}

void describe_object(char* out, std::size_t size, const Group& group) {
  *out = '\0';
  if (group.state != GState::waiting || group.object == nullptr) return;
  const char* kind = nullptr;
  switch (group.reason) {
    case WaitReason::join:
      std::snprintf(out, size, "goroutine %llu", Number{group.joined});
      return;
    case WaitReason::io_read:
    case WaitReason::io_write:
      std::snprintf(out, size, "descriptor %d", group.descriptor);
      return;
    case WaitReason::wait_group:
      kind = "WaitGroup";
      break;
    case WaitReason::chan_send:
    case WaitReason::chan_receive:
      kind = "Chan";
      break;
    case WaitReason::select:
      kind = "select";
      break;
    case WaitReason::mutex:
      kind = "Mutex";
      break;
    case WaitReason::rw_mutex_read:
    case WaitReason::rw_mutex_write:
      kind = "RWMutex";
      break;
    case WaitReason::cond_var:
      kind = "CondVar";
      break;
    case WaitReason::semaphore:
      kind = "Semaphore";
      break;
    case WaitReason::once:
      kind = "Once";
      break;
    default:
      return;
  }
  if (group.reason == WaitReason::select) return;  // its channels are not read again
  std::snprintf(out, size, "%s %p", kind, group.object);
}

namespace {

void print_module(Text& out, std::uintptr_t pc) {
  symbol::Module module = symbol::module_of(pc - 1);
  out.add("    at %s+0x%llx\n", module.path == nullptr ? "?" : module.path,
          Number{module.path == nullptr ? pc : module.offset + 1});
}

void print_place(Text& out, std::uintptr_t pc, const symbol::Place& place) {
  out.add_text("    at ");
  if (!place.function.empty()) {
    out.add_text(place.function.c_str());
  } else {
    out.add_text(place.module.empty() ? "?" : place.module.c_str());
    out.add("+0x%llx", Number{place.module.empty() ? pc : place.offset});
  }
  if (!place.file.empty()) {
    out.add_text(" (");
    out.add_text(place.file.c_str());
    out.add(":%d)", place.line);
  }
  out.add_text("\n");
}

// Null: there is no memory to look it up.
const symbol::Place* find_place(std::uintptr_t pc, symbol::Names names) {
  try {
    return &symbol::place_of(pc, names);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

void print_frames(Text& out, const Frames& frames, Naming naming) {
  for (std::size_t i = 0; i < frames.count; ++i) {
    std::uintptr_t pc = frames.pcs[i];
    const symbol::Place* place =
        naming == Naming::by_symbols ? find_place(pc, symbol::Names::return_address) : nullptr;
    if (place != nullptr) {
      print_place(out, pc, *place);
    } else {
      print_module(out, pc);
    }
  }
}

namespace {

void print_ids(Text& out, const Group& group) {
  if (group.count == 1) return;
  out.add(", and %zu more alike:", group.count - 1);
  std::size_t shown = std::min(group.count, Group::kMostIds);
  for (std::size_t i = 1; i < shown; ++i) out.add(" %llu", Number{group.ids[i]});
  if (shown < group.count) out.add(" ...");
}

void print_body(Text& out, const Group& group, Naming naming) {
  if (group.body == 0) return;
  if (naming != Naming::by_symbols) return;
  const symbol::Place* place = find_place(group.body, symbol::Names::function);
  if (place == nullptr || place->function.empty()) return;
  out.add_text("    its body: ");
  out.add_text(place->function.c_str());
  out.add_text("\n");
}

void print_what(Text& out, const WaitGraph::Wait& wait) {
  if (wait.reason == WaitReason::mutex || wait.reason == WaitReason::once) {
    out.add("%s %p held by ", wait.reason == WaitReason::mutex ? "Mutex" : "Once", wait.object);
  } else {
    out.add("the end of ");
  }
}

}  // namespace

void print_group(Text& out, const Group& group, const WaitGraph& waits, Naming naming) {
  out.add("goroutine %llu", Number{group.ids[0]});
  if (*group.name != '\0') out.add(" (%s)", group.name);
  const char* does = group.state == GState::waiting ? text(group.reason)
                     : group.in_blocking_call       ? "blocking call"
                                                    : text(group.state);
  out.add(" [%s]", does);
  if (group.creator != 0) out.add(", started by goroutine %llu", Number{group.creator});
  char object[128];
  describe_object(object, sizeof object, group);
  if (*object != '\0')
    out.add(", on %s%s", object, group.has_different_objects ? " and others" : "");
  if (group.state == GState::waiting) {
    const WaitGraph::Wait* wait = waits.find(group.ids[0]);
    bool is_mutex = wait != nullptr && wait->owner_at != 0 && wait->object != nullptr;
    if (is_mutex && wait->owner != 0) out.add(" held by goroutine %llu", Number{wait->owner});
    if (is_mutex && wait->owner == 0) out.add(" held by no goroutine");
    if (group.waited_ns >= 0)
      out.add(", for at least %.3f s", static_cast<double>(group.waited_ns) / 1e9);
  }
  if (group.thread != 0) out.add(", on thread %d", group.thread);
  print_ids(out, group);
  out.add("\n");
  print_body(out, group, naming);
  print_frames(out, group.frames, naming);
  if (group.no_stack != nullptr) out.add("    no stack: %s\n", group.no_stack);
}

void print_cycles(Text& out, const WaitGraph& waits) {
  if (!waits.has_cycles()) return;
  std::uint64_t first = 0;
  waits.for_each_in_cycles([&](const WaitGraph::Wait* wait) {
    if (wait == nullptr) {
      out.add("goroutine %llu: a cycle, none of them will go on\n", Number{first});
      first = 0;
    } else {
      if (first == 0) {
        first = wait->id;
        out.add("magpie: goroutine %llu waits for ", Number{wait->id});
      } else {
        out.add("goroutine %llu, which waits for ", Number{wait->id});
      }
      print_what(out, *wait);
    }
  });
  if (waits.stuck_behind() != 0)
    out.add("magpie: %zu more goroutines wait for these\n", waits.stuck_behind());
}

void print(Text& out, const Snapshot& snapshot, Naming naming) {
  out.add("magpie: %zu goroutines\n", snapshot.goroutines());
  print_cycles(out, snapshot.waits());
  for (const Group* group : snapshot) {
    out.add("\n");
    print_group(out, *group, snapshot.waits(), naming);
  }
}

}  // namespace magpie::sched
