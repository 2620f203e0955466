#include "trace/recorder.h"

#include <pthread.h>
#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/guard.h"
#include "trace/buffer.h"
#include "trace/crash.h"
#include "trace/recording.h"

namespace magpie::trace {

namespace detail {
base::Atomic<bool> magpie_trace_is_on{false};  // atomic, a hint: see buffer.h
}  // namespace detail

base::Lock Outside::lock_;
Buffer Outside::buffer_{Buffer::OfOutside{}};

[[gnu::noinline]] void anchor() {}

namespace recording {
base::UncheckedLock control;
base::Lock switching;
State* the_recording = nullptr;
base::Event wake_up;
base::Atomic<bool> signalled{false};  // atomic, a hint: see recording.h
}  // namespace recording

using namespace recording;

namespace {

bool is_copy = false;  // the child of a fork() of a process that was recorded

// By the holder of `control`. A beginning that is still due comes first: its writer calls this too.
void write_due_end() {
  {
    base::Guard hold(switching);
    if (!the_recording->end_is_due || the_recording->begin_is_due) return;
  }
  if (!the_recording->plan.flight) {
    write_full_blocks();
    end_generation(the_recording->end_totals);
  }
  base::Guard hold(switching);
  the_recording->end_is_due = false;
}

// While nobody writes.
void close_blocks() {
  for (std::size_t i = 0; i < the_recording->blocks.streams(); ++i) {
    if (Block* block = detail::buffers[i].reset()) the_recording->blocks.put_full(block);
  }
}

}  // namespace

// ---- a stream needs a block

Block* Buffer::reset() {
  Block* block = std::exchange(block_, nullptr);
  at_ = nullptr;
  limit_.store(nullptr, base::relaxed);
  current_ = 0;
  return block;
}

std::uint8_t* Buffer::open(std::uint64_t now) {
  if (!is_outside_) stream_ = static_cast<std::uint16_t>(this - detail::buffers);
  Block* filled = std::exchange(block_, nullptr);
  block_ = the_recording->blocks.exchange(filled, stream_, now);
  if (filled != nullptr && !the_recording->plan.flight) wake_up.set();
  if (block_ == nullptr) {
    at_ = nullptr;
    limit_.store(nullptr, base::relaxed);
    lost_ = lost_ + 1;
    return nullptr;
  }
  limit_.store(end_of(block_), base::relaxed);
  last_ticks_ = now;
  last_object_ = 0;
  at_ = put_number(data_of(block_), current_);
  auto lost = static_cast<std::uint32_t>(lost_);
  if (std::uint64_t more = lost - std::exchange(lost_told_, lost); more != 0)
    put(now, Kind::lost, more);
  return at_;
}

// ---- the door

std::string Recorder::prepare(const Plan& plan, const Host& host) {
  Control hold;
  if (the_recording != nullptr) return "a trace is being recorded already";
  auto* made = new State;
  made->plan = plan;
  made->host = host;
  {
    base::Guard quick(switching);
    the_recording = made;
  }
  std::string error = set_up();
  if (!error.empty()) {
    base::Guard quick(switching);
    tear_down();
    return error;
  }
  if (plan.flight) take_signals();
  base::Guard quick(switching);
  the_recording->is_ready = true;
  return {};
}

bool Recorder::is_prepared() {
  Control hold;
  return the_recording != nullptr;
}

bool Recorder::is_of_parent() { return is_copy; }

bool Recorder::switch_on(const Start& start) {
  base::Guard hold(switching);
  if (the_recording == nullptr || !the_recording->is_ready || the_recording->is_ending ||
      the_recording->end_is_due || std::exchange(the_recording->is_running, true))
    return false;
  the_recording->begin_is_due = true;
  // A flight recorder forgets the run() before: its goroutines had the same numbers.
  while (the_recording->plan.flight) {
    Block* old = the_recording->blocks.take_full();
    if (old == nullptr) break;
    the_recording->blocks.give(old);
  }
  the_recording->procs = start.procs;
  the_recording->first_proc = start.proc;
  if (start.proc >= 0) detail::buffers[start.proc].set_current(start.goroutine);
  base::Guard outside(Outside::lock_);
  detail::magpie_trace_is_on.store(true, base::relaxed);
  return true;
}

bool Recorder::switch_off(const Sums& totals) {
  base::Guard hold(switching);
  if (the_recording == nullptr || !std::exchange(the_recording->is_running, false)) return false;
  the_recording->end_totals = totals;
  the_recording->end_is_due = true;
  {
    base::Guard outside(Outside::lock_);
    detail::magpie_trace_is_on.store(false, base::relaxed);
    if (Block* block = Outside::buffer_.reset()) the_recording->blocks.put_full(block);
  }
  close_blocks();
  // It may not have taken a block.
  if (int proc = the_recording->first_proc; proc >= 0) detail::buffers[proc].set_current(0);
  return true;
}

void Recorder::write_beginning(const Start& start) {
  Control hold;
  if (the_recording->plan.flight) {
    the_recording->prologue = make_prologue();
  } else {
    begin_generation(start.totals, start.states, start.is_new_run ? kNewRun : 0);
  }
  {
    base::Guard quick(switching);
    the_recording->begin_is_due = false;
  }
  write_due_end();
}

void Recorder::write_end() {
  Control hold;
  if (the_recording != nullptr) write_due_end();
}

Recorder::Finishing Recorder::begin_to_finish() {
  Control hold;
  if (the_recording == nullptr) return Finishing::by_others;
  write_due_end();
  base::Guard quick(switching);
  if (the_recording->is_ending) return Finishing::by_others;
  if (the_recording->is_running || the_recording->begin_is_due) return Finishing::too_early;
  the_recording->is_ending = true;
  return Finishing::by_caller;
}

std::string Recorder::finish() {
  pthread_t thread;
  {
    Control hold;
    the_recording->stop.store(true, base::relaxed);
    wake_up.set();
    thread = the_recording->thread;
  }
  pthread_join(thread, nullptr);
  Control hold;
  if (the_recording->plan.flight) give_back_signals();
  std::string failure = the_recording->failure;
  base::Guard quick(switching);
  for (std::size_t i = 0; i < the_recording->blocks.streams(); ++i)
    detail::buffers[i].forget_lost();
  Outside::buffer_.forget_lost();
  tear_down();
  return failure;
}

void Recorder::forget() {
  forget_crash_handlers();  // also without a recording: run() changes what is below them
  new (&switching) base::Lock;
  detail::magpie_trace_is_on.store(false, base::relaxed);
  new (&control) base::UncheckedLock;
  new (&wake_up) base::Event;
  new (&Outside::lock_) base::Lock;
  (void)Outside::buffer_.reset();
  if (detail::buffers != nullptr) {
    munmap(detail::buffers, kMostStreams * sizeof(Buffer));
    detail::buffers = nullptr;
  }
  if (the_recording == nullptr) return;
  is_copy = true;
  if (the_recording->plan.flight) give_back_signals();
  the_recording = nullptr;  // the parent's thread is not here: what it used stays as it is
}

}  // namespace magpie::trace
