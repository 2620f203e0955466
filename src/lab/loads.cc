#include "lab/loads.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace magpie::lab {
namespace {

// What a load knows of a goroutine.
struct Note {
  std::uint32_t kind = 0, depth = 0;
  std::uint64_t left = 0;
  TaskId other = kNoTask;
};

class Notes {
 public:
  Note& operator[](TaskId task) {
    if (task >= notes_.size()) notes_.resize(task + 1);
    return notes_[task];
  }

 private:
  std::vector<Note> notes_;
};

class Burst : public Load {
 public:
  Burst(std::uint64_t count, Ns work) : left_(count), work_(work) {}
  void begin(Machine& machine) override { machine.start_at(0, root_ = machine.make()); }
  Step step(Machine& machine, TaskId task) override {
    if (task != root_) return {work_, What::end};
    if (left_ == 0) return {0, What::end};
    --left_;
    return {0, What::spawn, machine.make()};
  }

 private:
  std::uint64_t left_;
  Ns work_;
  TaskId root_ = kNoTask;
};

// A node starts two children and waits for both. A leaf computes.
class ForkJoin : public Load {
 public:
  ForkJoin(std::uint32_t depth, Ns work) : depth_(depth), work_(work) {}
  void begin(Machine& machine) override {
    const TaskId root = machine.make();
    notes_[root] = {0, depth_, 2, kNoTask};
    machine.start_at(0, root);
  }
  Step step(Machine& machine, TaskId task) override {
    Note& note = notes_[task];
    if (note.kind == 3) return {0, What::end};  // it has woken its parent
    if (note.depth == 0) return finish(task, work_);
    if (note.kind < 2) {  // how many children it has started
      ++note.kind;
      const std::uint32_t depth = note.depth - 1;
      const TaskId child = machine.make();
      notes_[child] = {0, depth, 2, task};
      return {0, What::spawn, child};
    }
    if (note.left != 0) return {0, What::park};
    return finish(task, 0);
  }

 private:
  // The last child wakes its parent, and ends at its next step.
  Step finish(TaskId task, Ns compute) {
    Note& note = notes_[task];
    const TaskId parent = note.other;
    if (parent == kNoTask) return {compute, What::end};
    if (--notes_[parent].left != 0) return {compute, What::end};
    note.kind = 3;
    return {compute, What::wake, parent};
  }

  std::uint32_t depth_;
  Ns work_;
  Notes notes_;
};

// Requests come from outside at random times. Most are short, one in twenty has a long tail.
class Requests : public Load {
 public:
  Requests(std::uint64_t count, Ns work, double busy) : left_(count), work_(work), busy_(busy) {}
  void begin(Machine& machine) override { call_again(machine); }
  void called(Machine& machine, std::uint64_t) override {
    machine.arrive(machine.make());
    if (--left_ != 0) call_again(machine);
  }
  Step step(Machine& machine, TaskId) override { return {size(machine), What::end}; }

 private:
  // Pareto with exponent 1.5, between 5 and 250 times the work: the mean is 12.9 times the work.
  static constexpr double kLeast = 5, kMost = 250, kExponent = 1.5;
  Ns size(Machine& machine) {
    if (machine.uniform() > 0.05) return machine.exponential(static_cast<double>(work_));
    const double cut = 1 - std::pow(kLeast / kMost, kExponent);
    const double times = kLeast / std::pow(1 - machine.uniform() * cut, 1 / kExponent);
    return static_cast<Ns>(times * static_cast<double>(work_));
  }
  void call_again(Machine& machine) {
    const double mean = static_cast<double>(work_) * (0.95 + 0.05 * 12.9);
    const double gap = mean / (busy_ * machine.setup().procs);
    machine.call_at(machine.now() + machine.exponential(gap), 0);
  }
  std::uint64_t left_;
  Ns work_;
  double busy_;
};

// At regular times one goroutine comes from outside and starts a batch.
class Batches : public Load {
 public:
  Batches(std::uint64_t count, Ns work, double busy) : count_(count), work_(work), busy_(busy) {}
  void begin(Machine& machine) override {
    size_ = 16 * machine.setup().procs;
    batches_ = std::max<std::uint64_t>(1, count_ / size_);
    machine.call_at(0, 0);
  }
  void called(Machine& machine, std::uint64_t number) override {
    const TaskId root = machine.make();
    notes_[root] = {1, 0, size_, kNoTask};
    machine.arrive(root);
    if (number + 1 == batches_) return;
    const double gap =
        static_cast<double>(work_) * static_cast<double>(size_) / (busy_ * machine.setup().procs);
    machine.call_at(machine.now() + static_cast<Ns>(gap), number + 1);
  }
  Step step(Machine& machine, TaskId task) override {
    if (notes_[task].kind == 0) return {work_, What::end};
    if (notes_[task].left-- == 0) {
      notes_[task].kind = 0;
      return {0, What::end};
    }
    const TaskId child = machine.make();
    notes_[child] = {};
    return {0, What::spawn, child};
  }

 private:
  std::uint64_t count_, size_ = 0, batches_ = 0;
  Ns work_;
  double busy_;
  Notes notes_;
};

// Pairs that wake each other, two for each P; all are started by the first goroutine.
class PingPong : public Load {
 public:
  PingPong(std::uint64_t rounds, Ns work) : rounds_(rounds), work_(work) {}
  void begin(Machine& machine) override {
    pairs_ = 2 * machine.setup().procs;
    machine.start_at(0, root_ = machine.make());
    notes_[root_] = {};
  }
  Step step(Machine& machine, TaskId task) override {
    if (task == root_) {
      if (started_ == 2 * pairs_) return {0, What::end};
      const TaskId next = machine.make();
      notes_[next] = {static_cast<std::uint32_t>(started_ % 2), 0, rounds_, kNoTask};
      if (started_ % 2 == 1) {
        notes_[next].other = last_;
        notes_[last_].other = next;
      }
      ++started_;
      last_ = next;
      return {0, What::spawn, next};
    }
    Note& note = notes_[task];
    if (note.left == 0) return {0, What::end};
    // Even steps wait, odd steps answer; the partner that came second begins.
    const bool waits = note.depth++ % 2 == note.kind;
    if (waits) return {0, What::park};
    --note.left;
    if (note.other == kNoTask) {  // its partner has not been started
      --note.depth;
      ++note.left;
      return {0, What::yield};
    }
    return {work_, What::wake, note.other};
  }

 private:
  std::uint64_t rounds_, pairs_ = 0, started_ = 0;
  Ns work_;
  TaskId root_ = kNoTask, last_ = kNoTask;
  Notes notes_;
};

// Goroutines that sleep, and compute a little, in turn.
class Timers : public Load {
 public:
  Timers(std::uint64_t count, Ns work, double busy) : count_(count), work_(work), busy_(busy) {}
  void begin(Machine& machine) override {
    sleepers_ = 256 * machine.setup().procs;
    rounds_ = std::max<std::uint64_t>(1, count_ / sleepers_);
    machine.start_at(0, root_ = machine.make());
  }
  Step step(Machine& machine, TaskId task) override {
    if (task == root_) {
      if (started_ == sleepers_) return {0, What::end};
      ++started_;
      const TaskId next = machine.make();
      notes_[next] = {0, 0, rounds_, kNoTask};
      return {0, What::spawn, next};
    }
    Note& note = notes_[task];
    if (note.left-- == 0) return {0, What::end};
    const double cycle = static_cast<double>(work_) * static_cast<double>(sleepers_) /
                         (busy_ * machine.setup().procs);
    Step step{work_, What::sleep};
    step.sleep_ns = machine.exponential(cycle);
    return step;
  }

 private:
  std::uint64_t count_, sleepers_ = 0, rounds_ = 0, started_ = 0;
  Ns work_;
  double busy_;
  TaskId root_ = kNoTask;
  Notes notes_;
};

}  // namespace

void HomeArrivals::begin(Machine& machine) {
  for (std::uint32_t p = 0; p < machine.setup().procs; ++p) machine.call_at(gap(machine, p), p);
}
Ns HomeArrivals::gap(Machine& machine, std::uint64_t p) const {
  const double skew = p < machine.setup().procs / 2 ? 1 + skew_ : 1 - skew_;
  return machine.exponential(static_cast<double>(unit_) / (busy_ * skew));
}
void HomeArrivals::called(Machine& machine, std::uint64_t number) {
  if (left_ == 0) return;
  if (left_ != kForEver) --left_;
  if (machine.now() >= from_) arrivals_per_p_ += 1.0 / machine.setup().procs;
  machine.arrive_at(static_cast<std::uint32_t>(number), machine.make());
  machine.call_at(machine.now() + gap(machine, number), number);
}
Step HomeArrivals::step(Machine& machine, TaskId) {
  const Ns work = machine.exponential(static_cast<double>(unit_));
  work_ += static_cast<double>(work);
  ++jobs_;
  return {work, What::end};
}

void HomeBatches::begin(Machine& machine) {
  for (std::uint32_t p = 0; p < machine.setup().procs; ++p) machine.call_at(gap(machine), p);
}
Ns HomeBatches::gap(Machine& machine) const {
  return machine.exponential(static_cast<double>(work_) * (size_ + 1) / busy_);
}
void HomeBatches::called(Machine& machine, std::uint64_t p) {
  if (batches_left_ == 0) return;
  if (batches_left_ != kForEver) --batches_left_;
  const TaskId starter = machine.make();
  left_.resize(std::max<std::size_t>(left_.size(), starter + 1));
  left_[starter] = size_;
  machine.arrive_at(static_cast<std::uint32_t>(p), starter);
  machine.call_at(machine.now() + gap(machine), p);
}
Step HomeBatches::step(Machine& machine, TaskId task) {
  if (task >= left_.size() || left_[task] == 0) return {work_, What::end};
  --left_[task];
  const TaskId child = machine.make();
  if (child < left_.size()) left_[child] = 0;
  return {0, What::spawn, child};
}

void Heap::begin(Machine& machine) {
  for (std::uint64_t i = 0; i < count_; ++i) machine.start_at(0, machine.make());
}

const std::vector<LoadInfo>& loads() {
  static const std::vector<LoadInfo> all = {
      {"burst", "one goroutine starts all others", 4'000, 5'000},
      {"fork-join", "a binary tree: a node starts two children and waits for both", 1'024, 1'000},
      {"requests", "from outside, at random times; 5 % have a long tail", 1'000, 20'000},
      {"batches", "every so often one goroutine starts 16 for each P", 4'000, 5'000},
      {"ping-pong", "two pairs for each P that wake each other", 1'000, 200},
      {"timers", "256 sleepers for each P", 4'000, 2'000},
      {"at-home", "each P gets goroutines of its own, at random times", 4'000, 5'000},
      {"home-batches", "each P starts 32 of its own, at random times", 4'000, 5'000},
  };
  return all;
}

std::unique_ptr<Load> make_load(const std::string& name, const LoadOptions& options,
                                std::uint32_t procs) {
  std::string known;
  for (const LoadInfo& info : loads()) {
    known += (known.empty() ? "" : ", ") + info.name;
    if (info.name != name) continue;
    const bool is_per_p = name != "ping-pong" && options.count == 0;
    const std::uint64_t count =
        (options.count != 0 ? options.count : info.count) * (is_per_p ? procs : 1);
    const Ns work = options.work != 0 ? options.work : info.work;
    if (name == "burst") return std::make_unique<Burst>(count, work);
    if (name == "fork-join") {
      const double depth = std::log2(static_cast<double>(std::max<std::uint64_t>(count, 2)));
      return std::make_unique<ForkJoin>(static_cast<std::uint32_t>(std::lround(depth)), work);
    }
    if (name == "requests") return std::make_unique<Requests>(count, work, options.busy);
    if (name == "batches") return std::make_unique<Batches>(count, work, options.busy);
    if (name == "ping-pong") return std::make_unique<PingPong>(count, work);
    if (name == "timers") return std::make_unique<Timers>(count, work, options.busy);
    if (name == "at-home")
      return std::make_unique<HomeArrivals>(options.busy, work, options.skew, count);
    return std::make_unique<HomeBatches>(options.busy, work, 32, count);
  }
  throw std::invalid_argument("there is no load " + name + ": there are " + known);
}

}  // namespace magpie::lab
