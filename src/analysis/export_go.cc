// The format of Go 1.19: "go 1.19 trace", then events. An event is a byte (kind, and how many arguments beside the
// first), then its arguments as varints: the time since the last event of the P, and the rest. Events of a P stand
// in batches. The reader checks every change of state and refuses the whole file if one cannot be, so nothing
// is written here but by bring(), which knows what Go allows and inserts what is missing.

#include <array>
#include <map>
#include <ostream>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/export.h"
#include "sched/wait_reason.h"

namespace magpie::analysis {

namespace {

enum GoEvent : unsigned {
  kBatch = 1,
  kFrequency = 2,
  kStack = 3,
  kGomaxprocs = 4,
  kProcStart = 5,
  kProcStop = 6,
  kGoCreate = 13,
  kGoStart = 14,
  kGoEnd = 15,
  kGoSched = 17,
  kGoPreempt = 18,
  kGoSleep = 19,
  kGoBlock = 20,
  kGoUnblock = 21,
  kGoBlockSend = 22,
  kGoBlockRecv = 23,
  kGoBlockSelect = 24,
  kGoBlockSync = 25,
  kGoBlockCond = 26,
  kGoBlockNet = 27,
  kGoSysCall = 28,
  kGoSysExit = 29,
  kGoSysBlock = 30,
  kString = 37,
  kUserTaskCreate = 45,
  kUserTaskEnd = 46,
  kUserRegion = 47,
  kUserLog = 48,
};

constexpr std::size_t kBatchBytes = 64 * 1024;

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void put_event(std::string& out, GoEvent kind, const std::uint64_t* args, std::size_t count) {
  if (count <= 3) {
    out += static_cast<char>(kind | (count - 1) << 6);
    for (std::size_t i = 0; i < count; ++i) put_varint(out, args[i]);
    return;
  }
  std::string body;
  for (std::size_t i = 0; i < count; ++i) put_varint(body, args[i]);
  out += static_cast<char>(kind | 3u << 6);
  put_varint(out, body.size());
  out += body;
}

GoEvent block_event(std::uint8_t reason) {
  using sched::WaitReason;
  switch (static_cast<WaitReason>(reason)) {
    case WaitReason::sleep:
      return kGoSleep;
    case WaitReason::chan_send:
      return kGoBlockSend;
    case WaitReason::chan_receive:
      return kGoBlockRecv;
    case WaitReason::select:
      return kGoBlockSelect;
    case WaitReason::cond_var:
      return kGoBlockCond;
    case WaitReason::io_read:
    case WaitReason::io_write:
      return kGoBlockNet;
    case WaitReason::nil_chan_send:
    case WaitReason::nil_chan_receive:
    case WaitReason::select_no_cases:
      return kGoBlock;
    default:
      return kGoBlockSync;
  }
}

class Writer {
 public:
  Writer(const ExportSource& source, std::ostream& out) : source_(source), out_(out) {}

  void run() {
    out_.write("go 1.19 trace\0\0\0", 16);
    std::string head;
    const std::uint64_t frequency[] = {1'000'000'000};
    put_event(head, kFrequency, frequency, 1);
    out_ << head;
    Event event;
    while (source_.next(event)) {
      const States::Steps& steps = states_.apply(event);
      now_ns_ = states_.now_ns();
      before_steps(event);
      for (const Step& step : steps) follow(step, event);
      after_steps(event);
    }
    for (std::size_t i = 0; i < procs_.size(); ++i) flush(i);
  }

 private:
  enum class GoState : std::uint8_t { dead, runnable, running, waiting, in_syscall };
  struct GoG {
    GoState state = GoState::dead;
    std::uint64_t seq = 0;
    std::size_t proc = 0;
    std::uint64_t stack = 0;
    std::vector<std::uint64_t> regions;
  };
  struct GoP {
    std::string batch;
    std::int64_t last_ns = 0;
    bool is_running = false;
    std::uint64_t goroutine = 0;
  };

  // P 0 of the file is for what happened outside of all Ps; ours follow.
  std::size_t proc_of(std::int32_t proc) const { return static_cast<std::size_t>(proc + 1); }

  GoP& proc(std::size_t index) {
    if (index >= procs_.size()) procs_.resize(index + 1);
    return procs_[index];
  }

  void flush(std::size_t index) {
    out_ << procs_[index].batch;
    procs_[index].batch.clear();
  }

  template <class... Args>
  void write(std::size_t index, GoEvent kind, Args... args) {
    GoP& p = proc(index);
    if (p.batch.size() > kBatchBytes) flush(index);
    if (p.batch.empty()) {
      const std::uint64_t batch[] = {index, static_cast<std::uint64_t>(now_ns_)};
      put_event(p.batch, kBatch, batch, 2);
      p.last_ns = now_ns_;
    }
    const std::uint64_t all[] = {static_cast<std::uint64_t>(now_ns_ - p.last_ns),
                                 static_cast<std::uint64_t>(args)...};
    p.last_ns = now_ns_;
    put_event(p.batch, kind, all, sizeof...(args) + 1);
  }

  std::uint64_t string(const std::string& text) {
    if (text.empty()) return 0;
    auto [found, is_new] = strings_.try_emplace(text, strings_.size() + 1);
    if (is_new) {
      std::string entry(1, static_cast<char>(kString));
      put_varint(entry, found->second);
      put_varint(entry, text.size());
      out_ << entry << text;
    }
    return found->second;
  }

  // A stack of one frame: the code that the goroutine was started with.
  std::uint64_t stack(std::uint64_t pc) {
    auto [found, is_new] = stacks_.try_emplace(pc, stacks_.size() + 1);
    if (is_new) {
      const Symbol symbol = source_.symbol(pc);
      const std::string name = symbol.function.empty() ? "goroutine" : symbol.function;
      const std::uint64_t args[] = {found->second,       1,
                                    pc == 0 ? 1 : pc,    string(name),
                                    string(symbol.file), static_cast<std::uint64_t>(symbol.line)};
      std::string entry;
      put_event(entry, kStack, args, 6);
      out_ << entry;
    }
    return found->second;
  }

  // The P of the file that an event of ours on `event.proc` may stand on: that P, if it runs what Go would
  // say it does; otherwise the outside.
  std::size_t where(const Event& event) {
    if (event.proc < 0) return 0;
    const std::size_t index = proc_of(event.proc);
    return proc(index).goroutine == 0 || proc(index).goroutine == states_.actor(event) ? index : 0;
  }

  void leave_proc(GoG& g) {
    GoP& p = proc(g.proc);
    p.goroutine = 0;
  }

  void create(std::uint64_t number, std::size_t at) {
    GoG& g = goroutines_[number];
    const Goroutine* known = states_.find(number);
    g.stack = stack(known != nullptr ? known->site : 0);
    const std::uint64_t caller = known != nullptr && known->caller != 0 ? stack(known->caller) : 0;
    write(at, kGoCreate, number, g.stack, caller);
    g.state = GoState::runnable;
    g.seq = 1;
  }

  void make_runnable(std::uint64_t number, std::size_t at) {
    GoG& g = goroutines_[number];
    switch (g.state) {
      case GoState::dead:
        create(number, at);
        break;
      case GoState::runnable:
        break;
      case GoState::running:
        write(g.proc, kGoPreempt, g.stack);
        leave_proc(g);
        g.state = GoState::runnable;
        break;
      case GoState::waiting:
        write(at, kGoUnblock, number, g.seq++, 0);
        g.state = GoState::runnable;
        break;
      case GoState::in_syscall:
        write(at, kGoSysExit, number, g.seq++, 0);
        g.state = GoState::runnable;
        break;
    }
  }

  void make_running(std::uint64_t number, std::size_t on) {
    GoG& g = goroutines_[number];
    if (g.state == GoState::running && g.proc == on) return;
    make_runnable(number, 0);
    GoP& p = proc(on);
    if (p.goroutine != 0) make_runnable(p.goroutine, 0);
    start_proc(on, 0);
    write(on, kGoStart, number, g.seq++);
    g.state = GoState::running;
    g.proc = on;
    p.goroutine = number;
  }

  void start_proc(std::size_t index, std::uint64_t thread) {
    GoP& p = proc(index);
    if (p.is_running) return;
    p.is_running = true;
    write(index, kProcStart, thread);
  }

  void stop_proc(std::size_t index) {
    GoP& p = proc(index);
    if (!p.is_running) return;
    if (p.goroutine != 0) make_runnable(p.goroutine, 0);
    p.is_running = false;
    write(index, kProcStop);
  }

  // A goroutine stops running by `kind`. If it does not run, by Go's book, it does so for an instant, outside.
  void leave(std::uint64_t number, GoEvent kind, GoState to) {
    GoG& g = goroutines_[number];
    if (g.state != GoState::running) make_running(number, 0);
    if (kind == kGoEnd || kind == kGoSysBlock)
      write(g.proc, kind);
    else
      write(g.proc, kind, g.stack);
    leave_proc(g);
    if (g.proc == 0) stop_proc(0);
    g.state = to;
  }

  void follow(const Step& step, const Event& event) {
    const Goroutine& now = *step.now;
    switch (now.state) {
      case State::unknown:
        break;
      case State::runnable:
        if (event.kind == Kind::yield && goroutines_[now.number].state == GoState::running)
          leave(now.number, kGoSched, GoState::runnable);
        else
          make_runnable(now.number, where(event));
        break;
      case State::stopped:
      case State::without_p:
        make_runnable(now.number, 0);
        break;
      case State::running:
        if (now.proc >= 0) make_running(now.number, proc_of(now.proc));
        break;
      case State::waiting:
        if (goroutines_[now.number].state == GoState::waiting) break;
        if (event.kind == Kind::state)
          begin_waiting(now);
        else
          leave(now.number, block_event(now.reason), GoState::waiting);
        break;
      case State::blocking:
        if (now.proc >= 0) break;  // still on its P: after_steps() says that it makes a system call
        if (goroutines_[now.number].state == GoState::running) {
          if (!in_blocking_.contains(now.number))
            write(goroutines_[now.number].proc, kGoSysCall, 0);
          leave(now.number, kGoSysBlock, GoState::in_syscall);
        }
        break;
      case State::ended:
        leave(now.number, kGoEnd, GoState::dead);
        goroutines_.erase(now.number);
        in_blocking_.erase(now.number);
        break;
    }
  }

  // It waited already when the trace began.
  void begin_waiting(const Goroutine& now) {
    leave(now.number, block_event(now.reason), GoState::waiting);
  }

  void before_steps(const Event& event) {
    if (event.kind == Kind::taken && event.args[0] < states_.procs().size()) {
      const std::size_t index = proc_of(static_cast<std::int32_t>(event.args[0]));
      taken_from_ = index;
    }
  }

  void after_steps(const Event& event) {
    switch (event.kind) {
      case Kind::proc_begin:
        if (event.proc >= 0) start_proc(proc_of(event.proc), event.args[0]);
        break;
      case Kind::proc_end:
        if (event.proc >= 0) stop_proc(proc_of(event.proc));
        break;
      case Kind::taken:
        if (taken_from_ != 0) stop_proc(std::exchange(taken_from_, 0));
        break;
      case Kind::procs:
        write(0, kGomaxprocs, event.args[0], 0);
        break;
      case Kind::block_begin: {
        const std::uint64_t who = states_.actor(event);
        const GoG& g = goroutines_[who];
        if (g.state == GoState::running) {
          write(g.proc, kGoSysCall, g.stack);
          in_blocking_.insert(who);
        }
        break;
      }
      case Kind::block_end:
        in_blocking_.erase(states_.actor(event));
        break;
      case Kind::region_begin:
      case Kind::region_end:
      case Kind::task_begin:
      case Kind::task_end:
      case Kind::log:
        note_of_user(event);
        break;
      default:
        break;
    }
  }

  void note_of_user(const Event& event) {
    const std::uint64_t who = states_.actor(event);
    auto found = goroutines_.find(who);
    if (found == goroutines_.end() || found->second.state != GoState::running) return;
    GoG& g = found->second;
    switch (event.kind) {
      case Kind::region_begin:
        g.regions.push_back(string(source_.string(event.args[0])));
        write(g.proc, kUserRegion, 0, 0, g.regions.back(), g.stack);
        break;
      case Kind::region_end:
        if (g.regions.empty()) break;
        write(g.proc, kUserRegion, 0, 1, g.regions.back(), g.stack);
        g.regions.pop_back();
        break;
      case Kind::task_begin:
        if (!tasks_.insert(event.args[0]).second) break;
        write(g.proc, kUserTaskCreate, event.args[0], event.args[1],
              string(source_.string(event.args[2])), g.stack);
        break;
      case Kind::task_end:
        write(g.proc, kUserTaskEnd, event.args[0], g.stack);
        break;
      default: {
        const std::uint64_t category = string(source_.string(event.args[0]));
        write(g.proc, kUserLog, 0, category, g.stack);
        const std::string value = source_.string(event.args[1]);
        put_varint(proc(g.proc).batch, value.size());
        proc(g.proc).batch += value;
        break;
      }
    }
  }

  const ExportSource& source_;
  std::ostream& out_;
  States states_;
  std::int64_t now_ns_ = 0;
  std::size_t taken_from_ = 0;
  std::vector<GoP> procs_;
  std::unordered_map<std::uint64_t, GoG> goroutines_;
  std::unordered_set<std::uint64_t> in_blocking_, tasks_;
  std::map<std::string, std::uint64_t> strings_;
  std::map<std::uint64_t, std::uint64_t> stacks_;
};

}  // namespace

void export_go(const ExportSource& source, std::ostream& out) { Writer(source, out).run(); }

}  // namespace magpie::analysis
