#include <magpie/blocking.h>
#include <magpie/dump.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "sched/current.h"
#include "sched/dump/snapshot.h"
#include "sched/dump/text.h"
#include "sched/run/runtime.h"
#include "symbol/symbols.h"

namespace magpie {

using namespace sched;

namespace {

CodePlace code_place(std::uintptr_t pc, symbol::Names names) {
  const symbol::Place& place = symbol::place_of(pc, names);
  return {pc, place.function, place.file, place.line, place.module, place.offset};
}

GoroutineInfo info_of(const Group& group, const WaitGraph& waits) {
  GoroutineInfo info;
  info.id = group.ids[0];
  info.ids.assign(group.ids, group.ids + std::min(group.count, Group::kMostIds));
  info.count = group.count;
  info.name = group.name;
  info.state = text(group.state);
  if (group.state == GState::waiting) {
    info.reason = text(group.reason);
    info.object = reinterpret_cast<std::uintptr_t>(group.object);
    char object[128];
    describe_object(object, sizeof object, group);
    info.object_text = object;
    info.waited_for = std::chrono::nanoseconds(group.waited_ns);
    if (const WaitGraph::Wait* wait = waits.find(info.id)) info.waits_for = wait->owner;
  } else if (group.in_blocking_call) {
    info.reason = "blocking call";
  }
  info.started_by = group.creator;
  info.body = code_place(group.body, symbol::Names::function);
  info.thread = group.thread;
  for (std::size_t i = 0; i < group.frames.count; ++i)
    info.frames.push_back(code_place(group.frames.pcs[i], symbol::Names::return_address));
  info.has_stack = group.no_stack == nullptr;
  return info;
}

// Calls f(snapshot) if a runtime runs. It may take long. So a goroutine declares that it blocks its
// P: others run there meanwhile.
template <class F>
void with_snapshot(Fold fold, F f) {
  Snapshot snapshot;
  auto folding = fold == Fold::yes ? Snapshot::Folding::yes : Snapshot::Folding::no;
  if (current_m() == nullptr) {
    {
      Visit visit;
      if (!visit) return;
      snapshot.take(folding);
    }
    return f(snapshot);
  }
  snapshot.list();
  magpie::detail::BlockingCall without_p;
  // Sysmon looks at blocking calls every 1 to 10 ms, as most are short. Others wait for this P.
  runtime->sysmon.hurry();
  snapshot.take(folding);
  f(snapshot);
}

}  // namespace

GoroutineDump dump_goroutines(Fold fold) {
  GoroutineDump result;
  with_snapshot(fold, [&](const Snapshot& snapshot) {
    result.goroutines = snapshot.goroutines();
    for (const Group* group : snapshot) result.groups.push_back(info_of(*group, snapshot.waits()));
    std::vector<std::uint64_t> cycle;
    snapshot.waits().for_each_in_cycles([&](const WaitGraph::Wait* wait) {
      if (wait != nullptr) return cycle.push_back(wait->id);
      result.cycles.push_back(std::move(cycle));
      cycle.clear();
    });
    result.stuck_behind = snapshot.waits().stuck_behind();
  });
  return result;
}

void dump(std::ostream& out) {
  with_snapshot(Fold::yes, [&](const Snapshot& snapshot) {
    Text text(
        [](void* to, const char* what, std::size_t length) {
          static_cast<std::ostream*>(to)->write(what, static_cast<std::streamsize>(length));
        },
        &out);
    print(text, snapshot, Naming::by_symbols);
  });
}

void dump(int descriptor) {
  with_snapshot(Fold::yes, [&](const Snapshot& snapshot) {
    Text text(write_to_descriptor, &descriptor);
    print(text, snapshot, Naming::by_symbols);
  });
}

}  // namespace magpie
