#include "sched/run/tracing.h"

#include <utility>

#include "base/guard.h"
#include "sched/current.h"
#include "sched/run/runtime.h"

namespace magpie::sched {
namespace {

using trace::Buffer;

template <class T>
std::uint64_t number(T value) {
  return static_cast<std::uint64_t>(value);
}

Buffer& buffer_of(P* p) { return trace::buffer_of(p->index); }

std::uint64_t coded_body(G* g) { return trace::coded_pc(reinterpret_cast<std::uint64_t>(g->body)); }

// runnext counts the goroutines that it gave in another counter than all other places.
Place place_of_next(P* p) {
  std::uint64_t inherited = p->counters.inherited.read();
  bool from_runnext = std::exchange(p->traced_inherited, inherited) != inherited;
  Place noted = std::exchange(p->came_from, Place::ring);
  return from_runnext ? Place::runnext : noted;
}

void put_run(Buffer& buffer, std::uint64_t now, P* p, G* g) {
  buffer.put(now, Kind::run, g->id, number(place_of_next(p)));
  buffer.set_current(g->id);
}

}  // namespace

void trace_p(P* p, Kind kind) { buffer_of(p).put(trace::ticks_now(), kind); }
void trace_p(P* p, Kind kind, std::uint64_t a) { buffer_of(p).put(trace::ticks_now(), kind, a); }
void trace_p(P* p, Kind kind, std::uint64_t a, std::uint64_t b) {
  buffer_of(p).put(trace::ticks_now(), kind, a, b);
}
void trace_p(P* p, Kind kind, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  buffer_of(p).put(trace::ticks_now(), kind, a, b, c);
}

void trace_outside(Kind kind, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  trace::Outside::with([&](Buffer& buffer) {
    std::uint64_t now = trace::ticks_now();
    switch (trace::kKindInfo[number(kind)].args.size()) {
      case 0:
        return buffer.put(now, kind);
      case 1:
        return buffer.put(now, kind, a);
      case 2:
        return buffer.put(now, kind, a, b);
      case 3:
        return buffer.put(now, kind, a, b, c);
      default:
        return buffer.put(now, kind, a, b, c, d);
    }
  });
}

void trace_proc_begin(M* m) {
  trace_p(m->p, Kind::proc_begin, number(m->os.tid.load(base::relaxed)), number(m->p->index));
}

void trace_handed_over(P* p) { trace_p(p, Kind::thread_wake, number(p->index)); }

void trace_create(M* m, G* g, const void* caller) {
  std::uint64_t coded = trace::coded_pc(reinterpret_cast<std::uint64_t>(caller));
  Place place = m == nullptr ? Place::global : Place::runnext;
  auto put = [&](Buffer& buffer) {
    std::uint64_t now = trace::ticks_now();
    buffer.put(now, Kind::create, g->id, coded_body(g), number(place), coded);
    if (*g->name() != '\0') buffer.put_text(now, Kind::name, g->name(), {}, g->id);
  };
  if (m != nullptr) {
    put(buffer_of(m->p));
  } else {
    trace::Outside::with(put);
  }
}

void trace_run(M* m, G* g) { put_run(buffer_of(m->p), trace::ticks_now(), m->p, g); }

void trace_switch(M* m, G* g, G* next) {
  if (m->p == nullptr) return;
  Buffer& buffer = buffer_of(m->p);
  std::uint64_t now = trace::ticks_now();
  GState state = g->state.load(base::relaxed);
  if (state == GState::waiting) {
    buffer.put_object(now, Kind::park, 0, number(g->wait_reason.load(base::relaxed)));
  } else {
    buffer.put(now, Kind::yield, number(state == GState::runnable ? Place::ring : Place::global));
  }
  buffer.set_current(0);
  bool runs_at_once = next != nullptr && next->stack != nullptr && !next->bound;
  if (runs_at_once) put_run(buffer, now, m->p, next);
}

void trace_end(M* m) {
  trace_p(m->p, Kind::end);
  buffer_of(m->p).set_current(0);
}

void trace_join_begin(M* m, G* child) {
  trace_p(m->p, Kind::join_begin, child->id);
  buffer_of(m->p).set_current(child->id);
}

void trace_join_end(M* m, G* child, G* parent) {
  trace_p(m->p, Kind::join_end, child->id, parent->id);
  buffer_of(m->p).set_current(parent->id);
}

void trace_ready(M* m, G* g, Place place, Source source) {
  if (m != nullptr && m->p != nullptr) {
    trace_p(m->p, Kind::ready, g->id, number(place), number(source));
  } else {
    trace_outside(Kind::ready, g->id, number(place), number(source));
  }
}

void trace_taken(P* p, std::uint64_t goroutine, trace::Why why, std::uint64_t now) {
  buffer_of(p).put(now, Kind::taken, number(p->index), goroutine, number(why));
  buffer_of(p).set_current(0);
}

void trace_back(M* m) {
  trace_p(m->p, Kind::back, m->current->id);
  buffer_of(m->p).set_current(m->current->id);
}

// A goroutine whose P was taken need not queue for one because it is watched.
void trace_blocking(M* m, Kind kind) {
  std::uint64_t id = m->current->id;
  if (!m->grip.try_enter()) return trace_outside(kind, id);
  trace_p(m->p, kind, id);
  m->grip.leave();
}

void trace_queue(P* p) { trace_p(p, Kind::queue, p->queue.size(), runtime->global.size()); }

}  // namespace magpie::sched
