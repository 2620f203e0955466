// The messages are few and flat, so they are written by hand: a field is its number and wire type as a varint,
// then a varint, eight bytes, or a length and bytes. Field numbers are those of Perfetto's trace_packet.proto,
// track_event.proto and track_descriptor.proto.

#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include "analysis/export.h"
#include "analysis/spans.h"
#include "sched/wait_reason.h"

namespace magpie::analysis {

namespace {

class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& fixed(unsigned field, std::uint64_t value) {
    varint(field << 3 | 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Message& text(unsigned field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(unsigned field, const Message& inner) { return text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

enum : unsigned { kPacket = 1 };  // of Trace
enum : unsigned {
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,  // of TracePacket
  kInterned = 12,
  kSequenceFlags = 13,
  kDescriptor = 60
};
enum : unsigned {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kParent = 5,  // of TrackDescriptor
  kCounter = 8
};
enum : unsigned {
  kAnnotation = 4,
  kType = 9,
  kNameId = 10,
  kTrack = 11,  // of TrackEvent
  kEventName = 23,
  kCounterValue = 30,
  kFlow = 47,
  kFlowEnd = 48
};
enum : std::uint64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterType = 4 };

constexpr std::uint64_t kProcessTrack = 1, kGlobalQueue = 2, kRunnable = 3;
constexpr std::uint64_t proc_track(std::uint64_t proc) { return 1000 + 2 * proc; }
constexpr std::uint64_t queue_track(std::uint64_t proc) { return 1001 + 2 * proc; }
constexpr std::uint64_t goroutine_track(std::uint64_t g) { return (std::uint64_t{1} << 40) + g; }

class Writer {
 public:
  Writer(const ExportSource& source, std::ostream& out) : source_(source), out_(out) {}

  void run() {
    describe_process();
    Event event;
    while (source_.next(event)) {
      const States::Steps& steps = states_.apply(event);
      describe_procs();
      note(event);
      spans_.note(states_, event, [this](auto... span) { slice(span...); });
      count(steps, event);
    }
    spans_.finish(states_.now_ns(), [this](auto... span) { slice(span...); });
  }

 private:
  void put(Message& packet) {
    packet.number(kSequence, 1).number(kSequenceFlags, first_ ? 3 : 2);
    first_ = false;
    out_ << Message().message(kPacket, packet).bytes();
  }
  void put_event(std::int64_t time_ns, const Message& event) {
    Message packet;
    packet.number(kTimestamp, static_cast<std::uint64_t>(time_ns)).message(kTrackEvent, event);
    put(packet);
  }
  void describe(const Message& descriptor) {
    Message packet;
    packet.message(kDescriptor, descriptor);
    put(packet);
  }

  void describe_process() {
    Message process;
    process.number(1, static_cast<std::uint64_t>(source_.pid)).text(6, source_.program);
    describe(Message().number(kUuid, kProcessTrack).message(kProcess, process));
    for (auto [track, name] : {std::pair(kGlobalQueue, "global queue"), {kRunnable, "runnable"}})
      describe(Message()
                   .number(kUuid, track)
                   .number(kParent, kProcessTrack)
                   .text(kName, name)
                   .message(kCounter, Message()));
    states_.set_procs(source_.procs);
    describe_procs();
  }

  void describe_procs() {
    for (; described_ < states_.procs().size(); ++described_) {
      const std::string name = "P" + std::to_string(described_);
      describe(Message()
                   .number(kUuid, proc_track(described_))
                   .number(kParent, kProcessTrack)
                   .text(kName, name));
      describe(Message()
                   .number(kUuid, queue_track(described_))
                   .number(kParent, kProcessTrack)
                   .text(kName, name + " queue")
                   .message(kCounter, Message()));
    }
  }

  std::string name_of(std::uint64_t number) {
    if (auto given = names_.find(number); given != names_.end())
      return std::to_string(number) + " " + given->second;
    const Goroutine* g = states_.find(number);
    const std::uint64_t site = g != nullptr ? g->site : 0;
    const Symbol symbol = site != 0 ? source_.symbol(site) : Symbol{};
    return std::to_string(number) + (symbol.function.empty() ? "" : " " + symbol.function);
  }

  // Names are sent once, with a number.
  void intern(std::uint64_t number) {
    if (!interned_.insert(number).second) return;
    Message name;
    name.number(1, number).text(2, name_of(number));
    Message packet;
    packet.message(kInterned, Message().message(2, name));
    put(packet);
  }

  void slice(std::size_t proc, Pyramid::What what, std::uint64_t goroutine, std::int64_t begin_ns,
             std::int64_t end_ns) {
    Message begin;
    begin.number(kType, kSliceBegin).number(kTrack, proc_track(proc));
    if (what == Pyramid::What::searching) {
      begin.text(kEventName, "searching");
    } else if (what == Pyramid::What::blocking) {
      begin.text(kEventName, "blocking");
    } else {
      intern(goroutine);
      begin.number(kNameId, goroutine);
    }
    if (auto flow = flows_.find(goroutine); goroutine != 0 && flow != flows_.end()) {
      begin.fixed(kFlowEnd, flow->second);
      flows_.erase(flow);
    }
    put_event(begin_ns, begin);
    put_event(end_ns, Message().number(kType, kSliceEnd).number(kTrack, proc_track(proc)));
  }

  void instant(std::int64_t time_ns, std::int32_t proc, std::string_view name, std::uint64_t flow,
               unsigned flow_field) {
    Message event;
    event.number(kType, kInstant).text(kEventName, name);
    event.number(kTrack, proc >= 0 ? proc_track(static_cast<std::uint64_t>(proc)) : kProcessTrack);
    event.fixed(flow_field, flow);
    put_event(time_ns, event);
  }

  void note(const Event& e) {
    switch (e.kind) {
      case Kind::create:
      case Kind::ready:
        flows_[e.args[0]] = ++flow_;
        instant(e.time_ns, e.proc, e.kind == Kind::create ? "go" : "wake", flow_, kFlow);
        break;
      case Kind::steal:
        ++flow_;
        instant(e.time_ns, static_cast<std::int32_t>(e.args[0]), "stolen from", flow_, kFlow);
        instant(e.time_ns, e.proc, "steal", flow_, kFlowEnd);
        break;
      case Kind::queue:
        if (e.proc >= 0)
          counter(e.time_ns, queue_track(static_cast<std::uint64_t>(e.proc)), e.args[0]);
        counter(e.time_ns, kGlobalQueue, e.args[1]);
        break;
      case Kind::name:
        names_[e.args[0]] = source_.string(e.args[1]);
        break;
      case Kind::region_begin:
      case Kind::region_end:
      case Kind::log:
        note_of_user(e);
        break;
      default:
        break;
    }
  }

  void note_of_user(const Event& e) {
    const std::uint64_t who = states_.actor(e);
    const std::uint64_t track = goroutine_track(who);
    if (tracked_.insert(who).second)
      describe(Message()
                   .number(kUuid, track)
                   .number(kParent, kProcessTrack)
                   .text(kName, "goroutine " + name_of(who)));
    Message event;
    event.number(kTrack, track);
    if (e.kind == Kind::region_end) {
      event.number(kType, kSliceEnd);
    } else if (e.kind == Kind::region_begin) {
      event.number(kType, kSliceBegin).text(kEventName, source_.string(e.args[0]));
    } else {
      event.number(kType, kInstant)
          .text(kEventName, source_.string(e.args[0]) + ": " + source_.string(e.args[1]));
    }
    put_event(e.time_ns, event);
  }

  void counter(std::int64_t time_ns, std::uint64_t track, std::uint64_t value) {
    put_event(
        time_ns,
        Message().number(kType, kCounterType).number(kTrack, track).number(kCounterValue, value));
  }

  // The number of runnable goroutines, at most once a microsecond.
  void count(const States::Steps& steps, const Event& event) {
    for (const Step& step : steps)
      runnable_ += (step.now->state == State::runnable) - (step.before.state == State::runnable);
    if (runnable_ == shown_ || event.time_ns < shown_at_ns_ + 1000) return;
    counter(event.time_ns, kRunnable, static_cast<std::uint64_t>(runnable_));
    shown_ = runnable_;
    shown_at_ns_ = event.time_ns;
  }

  const ExportSource& source_;
  std::ostream& out_;
  States states_;
  SpanMaker spans_;
  bool first_ = true;
  std::size_t described_ = 0;
  std::unordered_set<std::uint64_t> interned_, tracked_;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::unordered_map<std::uint64_t, std::uint64_t>
      flows_;  // goroutine to the flow that ends where it runs
  std::uint64_t flow_ = 0;
  std::int64_t runnable_ = 0, shown_ = 0, shown_at_ns_ = -1000;
};

}  // namespace

void export_perfetto(const ExportSource& source, std::ostream& out) { Writer(source, out).run(); }

}  // namespace magpie::analysis
