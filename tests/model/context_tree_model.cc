// Model of [context-tree]: contexts are cancelled, made and destroyed at the same time.
//
// Checked   When cancel() returns everything below is over, whoever came first; a child that is
//           made meanwhile is over in the end; nobody touches a node that is gone (a plain variable
//           stands for its memory), and nobody waits for ever; lists and links are guarded (plain
//           variables too); what came before a cancel is seen by one who sees that a child is over.
// Bounds    Two threads: every interleaving, or so many preemptions as main() says. Three: the
//           same.
// Stands in Locks, the count of handles, and the WaitGroup in a node. context.cc's steps around the
//           tree.
//
// Mutant MUTANT_RELAXED_RELEASE   one who sees the end does not see what came before it
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_NO_WAIT           nobody waits until a node is complete
// Mutant MUTANT_KEEPS_DYING       a child that is dying is taken along
// Mutant MUTANT_DOES_NOT_LEAVE    a dying child stays on its parent's list
// Mutant MUTANT_COMES_LATE        a child whose parent is over is not cancelled
// Mutant MUTANT_NO_LOCK           a node's list has no lock
#include "model_run.h"
#include "waiters.h"

#include "flow/context_tree.h"

namespace {

using magpie::flow::ContextEnd;
using magpie::flow::ContextEndWord;
using magpie::flow::ContextTree;
using model::chosen;

// A plain variable whose unordered use is an error.
template <class T>
class Plain {
 public:
  Plain() { value_(RL_INFO) = T{}; }
  Plain& operator=(T value) {
    value_(RL_INFO) = value;
    return *this;
  }
  operator T() const { return value_(RL_INFO); }  // NOLINT: as plain as can be
  T operator->() const { return value_(RL_INFO); }

 private:
  mutable rl::var<T> value_;
};

class Lock {
 public:
  void lock() {
    if (!chosen<"MUTANT_NO_LOCK">()) mutex_.lock(RL_INFO);
  }
  void unlock() {
    if (!chosen<"MUTANT_NO_LOCK">()) mutex_.unlock(RL_INFO);
  }

 private:
  rl::mutex mutex_;
};

// One at a time is added. Set: none is.
class Completing {
 public:
  Completing() { event_.init(true, true, RL_INFO); }
  ~Completing() { event_.deinit(RL_INFO); }
  void add(int) { event_.reset(RL_INFO); }
  void done() { event_.set(RL_INFO); }
  void wait() {
    if (!chosen<"MUTANT_NO_WAIT">()) event_.wait(false, false, RL_INFO);
  }

 private:
  rl::generic_event event_;
};

struct Node;

// As std::shared_ptr.
class Held {
 public:
  Held() = default;
  explicit Held(Node* counted) : node_(counted) {}
  Held(Held&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    let_go();
    node_ = std::exchange(other.node_, nullptr);
    return *this;
  }
  ~Held() { let_go(); }
  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(const Held& held, std::nullptr_t) { return held.node_ == nullptr; }

 private:
  inline void let_go();
  Node* node_ = nullptr;
};

// context.cc
struct Node {
  using Held = ::Held;
  using Tree = ContextTree<Node>;

  model::Memory memory;
  Node* parent = nullptr;
  rl::atomic<int> count;  // of Helds
  ContextEndWord how;
  Lock lock;
  Plain<Node*> children, next, previous;
  Plain<bool> listed;
  Held link;
  Completing completing;

  Node() { count.store(1, rl::mo_relaxed, RL_INFO); }
  ~Node() { (void)new (&link) Held; }  // an execution that failed may leave anything there

  bool is_over() const { return how.get() != ContextEnd::none; }
  struct Whole {};
  ContextEnd kind_of_end(ContextEnd why) const { return why; }
  auto end_locked(ContextEnd) {
    memory.touch();
    return [this] { memory.touch(); };
  }
  Held try_hold() {
    memory.touch();
    int before = count.load(rl::mo_relaxed, RL_INFO);
    do {
      if (before == 0 && !chosen<"MUTANT_KEEPS_DYING">()) return Held();
    } while (!count.compare_exchange_weak(before, before + 1, rl::mo_acq_rel, RL_INFO));
    return Held(this);
  }
  void let_go() {
    if (count.fetch_sub(1, rl::mo_acq_rel, RL_INFO) != 1) return;
    if (parent != nullptr && !chosen<"MUTANT_DOES_NOT_LEAVE">()) Tree::leave(*this, *parent);
    memory.destroy();
  }
  void join(Node& above) {
    parent = &above;
    ContextEnd already = Tree::add(*this, above);
    if (already != ContextEnd::none && !chosen<"MUTANT_COMES_LATE">()) cancel();
  }
  void cancel() {
    Tree::cancel(*this, ContextEnd::cancelled, [](Node& node) { node.memory.touch(); });
  }
};

void Held::let_go() {
  if (node_ != nullptr) std::exchange(node_, nullptr)->let_go();
}

// root - middle - leaf
struct Chain {
  Node root, middle, leaf;
  Chain() {
    middle.join(root);
    leaf.join(middle);
  }
};

struct TwoCancelTheSame : model::Scenario<2> {
  Chain chain;
  void thread(unsigned) override {
    chain.root.cancel();
    RL_ASSERT(chain.middle.is_over() && chain.leaf.is_over());
  }
};

struct OneCancelsBelowTheOther : model::Scenario<2> {
  Chain chain;
  void thread(unsigned index) override {
    (index == 0 ? chain.root : chain.middle).cancel();
    RL_ASSERT(chain.leaf.is_over());
  }
};

struct ThreeCancel : model::Scenario<3> {
  Chain chain;
  void thread(unsigned index) override {
    (index == 0 ? chain.root : index == 1 ? chain.middle : chain.root).cancel();
    RL_ASSERT(chain.leaf.is_over());
  }
};

struct OneIsMade : model::Scenario<2> {
  Node root, first, second;
  void before() override { first.join(root); }
  void thread(unsigned index) override { index == 0 ? root.cancel() : second.join(root); }
  void after() override { RL_ASSERT(first.is_over() && second.is_over()); }
};

struct OneDies : model::Scenario<2> {
  Node root, first, second, third;
  void before() override {
    first.join(root);
    second.join(root);
    third.join(root);
  }
  void thread(unsigned index) override { index == 0 ? root.cancel() : second.let_go(); }
  void after() override { RL_ASSERT(first.is_over() && third.is_over()); }
};

struct OneIsMadeAndOneDies : model::Scenario<3> {
  Node root, first, second;
  void before() override { first.join(root); }
  void thread(unsigned index) override {
    if (index == 0) root.cancel();
    if (index == 1) first.let_go();
    if (index == 2) second.join(root);
  }
  void after() override { RL_ASSERT(second.is_over()); }
};

struct OneSeesTheEnd : model::Scenario<2> {
  Node root, child;
  Plain<int> before_it;
  void before() override {
    child.join(root);
    before_it = 0;
  }
  void thread(unsigned index) override {
    if (index == 0) {
      before_it = 1;
      root.cancel();
    } else if (child.is_over()) {
      RL_ASSERT(before_it == 1);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<OneSeesTheEnd>("one looks", model::full())
      .explore<TwoCancelTheSame>("two cancel the same", model::bounded(4))
      .explore<OneCancelsBelowTheOther>("one cancels below the other", model::bounded(4))
      .explore<OneIsMade>("a child is made", model::bounded(5))
      .explore<OneDies>("a child dies", model::bounded(4))
      .explore<OneIsMadeAndOneDies>("one child is made, one dies", model::bounded(3))
      .explore<ThreeCancel>("three cancel", model::bounded(2))
      .report();
}
