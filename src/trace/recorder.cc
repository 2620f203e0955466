#include "trace/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/event.h"
#include "base/guard.h"
#include "base/lock.h"
#include "base/os.h"
#include "trace/block_file.h"
#include "trace/buffer.h"
#include "trace/crash.h"
#include "trace/modules.h"
#include "trace/stream.h"

namespace magpie::trace {

namespace detail {
base::Atomic<bool> magpie_trace_is_on{false};  // atomic, a hint: see buffer.h
Buffer* buffers = nullptr;
}  // namespace detail

base::Lock Outside::lock_;
Buffer Outside::buffer_{Buffer::OfOutside{}};

[[gnu::noinline]] void anchor() {}

namespace {

constexpr std::size_t kGenerationBytes = std::size_t{16} << 20;
constexpr std::size_t kLeastBlocks = 64;

struct State {
  Plan plan;
  Host host{};
  Instant origin;
  std::uint64_t ticks_per_second = 0;
  std::int64_t wall_ns = 0;
  // guarded by `switching`
  bool is_ready = false;      // set_up() is done
  bool is_running = false;    // between switch_on() and switch_off()
  bool begin_is_due = false;  // from switch_on() to write_beginning()
  bool end_is_due = false;    // from switch_off() to write_end()
  bool is_ending = false;     // from begin_to_finish()
  Sums end_totals{};          // when it was switched off
  std::uint32_t procs = 0;
  int first_proc = kOutside;  // whose buffer was told at switch_on() what runs there
  std::string prologue;       // flight: what the last words of a crash begin with

  // the blocks
  Blocks blocks;
  std::byte* memory = nullptr;
  std::size_t block_count = 0;

  // the file
  int fd = -1;
  off_t good_bytes = 0;  // of whole blocks
  std::size_t generation_bytes = 0;
  std::size_t next_generation_at = kGenerationBytes;
  std::uint64_t lost_in_file = 0;
  std::string failure;  // why a block could not be written; empty: all were

  // the thread
  pthread_t thread{};
  base::Event wake_up;
  base::Atomic<bool> stop{false};       // atomic, a hint: set before the event
  base::Atomic<bool> signalled{false};  // atomic, a hint: a signal asks for a snapshot
};

// For everything but the blocks. Its holder may block, and a goroutine that holds it may move to
// another thread. Nobody takes it inside the runtime.
base::UncheckedLock control;
// For `the_recording` and State::is_running, inside the runtime too.
base::Lock switching;
State* the_recording = nullptr;  // from prepare() to finish()
struct sigaction before_signal;
bool is_copy = false;  // the child of a fork() of a process that was recorded

class Control {
 public:
  Control() { control.lock(); }
  ~Control() { control.unlock(); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
};

Block* block_at(std::size_t index) {
  return std::launder(reinterpret_cast<Block*>(the_recording->memory + index * kBlockBytes));
}

std::string with_reason(const std::string& what) { return what + ": " + std::strerror(errno); }

// ---- payloads

Totals named(const Sums& sums) {
  Totals totals;
  for (std::size_t i = 0; i < the_recording->host.total_names.size(); ++i)
    totals.emplace_back(the_recording->host.total_names[i], sums[i]);
  return totals;
}

Sums totals_now() {
  Sums sums{};
  the_recording->host.totals(sums);
  return sums;
}

std::string begin_payload(const Sums& totals) {
  BeginPayload begin;
  begin.origin = the_recording->origin;
  begin.now = instant_now();
  begin.ticks_per_second = the_recording->ticks_per_second;
  begin.wall_ns = the_recording->wall_ns;
  begin.pid = getpid();
  begin.procs = the_recording->procs;
  begin.anchor = reinterpret_cast<std::uint64_t>(&anchor);
  begin.program = program_path();
  begin.totals = named(totals);
  return encode(begin);
}

std::string end_payload(const Sums& totals) {
  EndPayload end;
  end.now = instant_now();
  end.lost = the_recording->lost_in_file + Outside::lost();
  for (std::size_t i = 0; i < the_recording->blocks.streams(); ++i)
    end.lost += detail::buffers[i].lost();
  end.totals = named(totals);
  return encode(end);
}

// ---- the file

// What a block that cannot be written would have told.
std::uint64_t count_events(const std::uint8_t* payload, std::size_t bytes) {
  Decoding decoding;
  Strings strings;
  for (const KindInfo& kind : kKindInfo) decoding.kinds.emplace_back(kind.args);
  decoding.strings = &strings;
  Stream stream(0, {{BlockHeader{}, payload, bytes, &decoding}});
  std::uint64_t count = 0;
  while (stream.advance()) ++count;
  return count;
}

// False: the file could not be written, and is as it was before.
bool add_to_file(const BlockHeader& header, const void* payload) {
  if (write_block(the_recording->fd, header, payload)) {
    the_recording->good_bytes += static_cast<off_t>(sizeof header + header.payload_bytes);
    return true;
  }
  std::string failure = with_reason(the_recording->plan.path);
  // If half a block stays behind, the reader skips it.
  if (ftruncate(the_recording->fd, the_recording->good_bytes) == 0)
    (void)lseek(the_recording->fd, the_recording->good_bytes, SEEK_SET);
  if (the_recording->failure.empty())
    base::warn("trace: %s; events are lost for as long as that lasts", failure.c_str());
  the_recording->failure = std::move(failure);
  return false;
}

void add_to_file(BlockType type, std::string_view payload, std::uint8_t flags = 0) {
  BlockHeader header = header_of(type, the_recording->blocks.generation(), payload.size());
  header.flags = flags;
  (void)add_to_file(header, payload.data());
}

void write_full_blocks() {
  while (Block* block = the_recording->blocks.take_full()) {
    std::size_t bytes = block->used();
    the_recording->generation_bytes += bytes;
    if (!add_to_file(header_of(*block, bytes), data_of(block)))
      the_recording->lost_in_file += count_events(data_of(block), bytes);
    the_recording->blocks.give(block);
  }
}

void begin_generation(const Sums& totals, const StateList& states, std::uint8_t flags) {
  add_to_file(BlockType::begin, begin_payload(totals), flags);
  add_to_file(BlockType::modules, encode_modules());
  add_to_file(BlockType::states, states.view());
  the_recording->generation_bytes = 0;
  the_recording->next_generation_at = std::max(kGenerationBytes, 2 * states.view().size());
}

// Events that are written from now on belong to the next generation. A P that sleeps keeps its
// block: the block tells its generation, wherever it comes in the file.
void cut() {
  Sums totals = totals_now();
  add_to_file(BlockType::end, end_payload(totals));
  the_recording->blocks.next_generation();
  for (std::size_t i = 0; i < the_recording->blocks.streams(); ++i)
    detail::buffers[i].ask_for_new_block();
  Outside::ask_for_new_block();
  StateList states;
  the_recording->host.states(states);
  the_recording->procs = the_recording->host.procs();
  begin_generation(totals, states, 0);
}

bool is_running() {
  base::Guard hold(switching);
  return the_recording->is_running;
}

void* serve(void*) {
  pthread_setname_np(pthread_self(), "magpie-trace");
  for (;;) {
    the_recording->wake_up.wait();
    if (the_recording->stop.load(base::relaxed)) return nullptr;
    if (the_recording->signalled.exchange(false, base::relaxed)) {
      std::string error = Recorder::snapshot(the_recording->plan.path);
      if (!error.empty()) base::warn("trace: %s", error.c_str());
    }
    if (the_recording->plan.flight) continue;
    Control hold;
    write_full_blocks();
    if (the_recording->generation_bytes >= the_recording->next_generation_at && is_running()) cut();
  }
}

// ---- the flight recorder

struct Copy {
  BlockHeader header;
  std::size_t offset;
};

// Copies the blocks, oldest first, while their writers go on. A block that is reused meanwhile is
// left out: it was the oldest.
std::vector<Copy> copy_blocks(base::PageArray<std::uint8_t>& memory) {
  std::vector<std::pair<std::uint64_t, Block*>> order;
  for (std::size_t i = 0; i < the_recording->block_count; ++i) {
    Block* block = block_at(i);
    if (std::uint64_t sequence = the_recording->blocks.sequence_of(block))
      order.emplace_back(sequence, block);
  }
  std::sort(order.begin(), order.end());
  std::vector<Copy> copies;
  if (!memory.grow_to(std::max<std::size_t>(order.size(), 1) * kBlockBytes)) return copies;
  std::size_t offset = 0;
  for (auto [sequence, block] : order) {
    if (!the_recording->blocks.pin(block, sequence)) continue;
    std::size_t bytes = block->used();
    std::memcpy(memory.data() + offset, data_of(block), bytes);
    copies.push_back({header_of(*block, bytes), offset});
    the_recording->blocks.unpin(block);
    offset += bytes;
  }
  return copies;
}

// False: there is no flight recorder.
bool list_states_of_flight(StateList& states) {
  void (*list)(StateList&) = nullptr;
  {
    Control hold;
    if (the_recording == nullptr || !the_recording->plan.flight) return false;
    list = the_recording->host.states;
  }
  list(states);
  return true;
}

std::string make_prologue() {
  char header[kFileHeaderBytes];
  write_file_header(header);
  std::string out(header, sizeof header);
  std::string begin = begin_payload(Sums{}), modules = encode_modules();
  std::uint32_t generation = the_recording->blocks.generation();
  append_block(out, header_of(BlockType::begin, generation, begin.size()), begin);
  append_block(out, header_of(BlockType::modules, generation, modules.size()), modules);
  return out;
}

// In the handler of a signal, while other threads may still write: no lock, no memory.
void write_last_words() {
  detail::magpie_trace_is_on.store(false, base::relaxed);
  int fd = open_to_write(the_recording->plan.path.c_str());
  if (fd < 0) return;
  bool good = write_all(fd, the_recording->prologue.data(), the_recording->prologue.size());
  for (std::size_t i = 0; i < the_recording->block_count && good; ++i) {
    Block* block = block_at(i);
    if (block->is_free) continue;
    std::size_t bytes = block->used();
    good = write_block(fd, header_of(*block, bytes), data_of(block));
  }
  close(fd);
}

void on_signal(int) {
  if (the_recording == nullptr) return;
  int saved_errno = errno;
  the_recording->signalled.store(true, base::relaxed);
  the_recording->wake_up.set();
  errno = saved_errno;
}

void give_back_signals() {
  remove_crash_handlers();
  if (the_recording->plan.signal != 0)
    sigaction(the_recording->plan.signal, &before_signal, nullptr);
}

// ---- setting up

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

std::string set_up() {
  if (!map_buffers() || !map_blocks()) return "no memory for the trace";
  if (!the_recording->plan.flight) {
    if (std::string error = open_file(); !error.empty()) return error;
  }
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

// By the holder of `control`. A beginning that is still due comes first: its writer calls this too.
void write_due_end() {
  {
    base::Guard hold(switching);
    if (!the_recording->end_is_due || the_recording->begin_is_due) return;
  }
  if (!the_recording->plan.flight) {
    write_full_blocks();
    add_to_file(BlockType::end, end_payload(the_recording->end_totals));
    the_recording->blocks.next_generation();
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
  if (filled != nullptr && !the_recording->plan.flight) the_recording->wake_up.set();
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
  if (plan.flight && plan.signal != 0) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(plan.signal, &action, &before_signal);
  }
  if (plan.flight && plan.on_crash && !plan.path.empty()) install_crash_handlers(write_last_words);
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
    the_recording->wake_up.set();
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

std::string Recorder::snapshot(const std::string& path) {
  // Before the lock: a goroutine that enters the runtime may never come back, if run() ends.
  StateList states;
  if (!list_states_of_flight(states)) return "no flight recorder is on";
  Control hold;
  if (the_recording == nullptr) return "no flight recorder is on";
  std::string prologue = make_prologue();
  base::PageArray<std::uint8_t> memory;
  std::vector<Copy> copies = copy_blocks(memory);
  std::string end = end_payload(Sums{});

  int fd = open_to_write(path.c_str());
  if (fd < 0) return with_reason(path);
  std::uint32_t generation = the_recording->blocks.generation();
  bool good = write_all(fd, prologue.data(), prologue.size());
  for (const Copy& copy : copies)
    good = good && write_block(fd, copy.header, memory.data() + copy.offset);
  BlockHeader header = header_of(BlockType::states, generation, states.view().size());
  good = good && write_block(fd, header, states.view().data());
  good = good && write_block(fd, header_of(BlockType::end, generation, end.size()), end.data());
  std::string error = good ? std::string() : with_reason(path);
  close(fd);
  return error;
}

void Recorder::forget() {
  forget_crash_handlers();  // also without a recording: run() changes what is below them
  new (&switching) base::Lock;
  detail::magpie_trace_is_on.store(false, base::relaxed);
  new (&control) base::UncheckedLock;
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
