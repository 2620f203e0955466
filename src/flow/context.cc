// context.cc: contexts, on the tree of [context-tree]: context_tree.h.
#include <magpie/context.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>

#include <magpie/blocking.h>
#include <magpie/detail/chan_core.h>
#include <magpie/detail/element.h>
#include <magpie/detail/shared_function.h>
#include <magpie/go.h>
#include <magpie/runtime.h>
#include <magpie/wait_group.h>

#include "base/lock.h"
#include "flow/context_tree.h"
#include "sched/cancel_source.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/presence.h"

namespace magpie {
namespace detail {

using flow::ContextEnd;

// A cancel is on its way down from a node. If that was a goroutine's and run() dropped it there,
// nobody waits for it.
class Completing {
 public:
  void add(int) {
    if (goroutine_id() != 0) {
      WaitGroup::Starting count(group_);
    } else {
      group_.add(1);
    }
  }
  void done() { group_.done(); }
  void wait() { (void)group_.wait_unless_dropped(); }

 private:
  WaitGroup group_;
};

// A lock whose holder is inside the runtime: it is not stopped with the lock held, nor dropped.
class InsideLock {
 public:
  void lock() {
    sched::M* m = sched::current_m();
    bool enters = m != nullptr && !m->grip.is_inside();
    if (enters) sched::enter_runtime(m);
    lock_.lock();
    entered_ = enters;
  }
  void unlock() {
    bool entered = entered_;
    lock_.unlock();
    if (entered) sched::leave_runtime();
  }

 private:
  base::UncheckedLock lock_;
  bool entered_ = false;  // guarded by lock_
};

struct CancelReason {
  ContextEnd end;
  std::exception_ptr cause = nullptr;  // null: none was given
};

struct ContextNode : std::enable_shared_from_this<ContextNode> {
  using Held = std::shared_ptr<ContextNode>;
  using Tree = flow::ContextTree<ContextNode>;

  explicit ContextNode(Held above)
      : parent(std::move(above)), deadline(parent ? parent->deadline : kNoDeadline) {
    if (parent) source.inherit_deadline(parent->source);
  }
  ~ContextNode();

  // A deadline whose run() has ended counts although nobody has cancelled it yet.
  ContextEnd end() const {
    ContextEnd already = how.get();
    return already == ContextEnd::none ? kind_of_end({already}) : already;
  }
  // The same for a context that is about to be over: what end() has told stays true.
  ContextEnd kind_of_end(const CancelReason& why) const {
    return source.has_expired_unwatched() ? ContextEnd::timed_out : why.end;
  }
  // Cancels the node if its deadline has passed and no timer watches it.
  void notice_end() {
    if (how.get() == ContextEnd::none && source.has_expired_unwatched())
      cancel({ContextEnd::timed_out});
  }
  // The same for what cannot look after the deadline itself, as the callbacks of a stop token. In
  // another run() than that of its timer the node gets another one.
  void see_to_deadline();
  std::exception_ptr given_cause() {
    std::lock_guard hold(lock);
    return cause;
  }

  void cancel(const CancelReason& why);
  void join_parent();

  // for the tree
  using Whole = sched::Entry;  // it is not dropped before all below a node are over, and told
  auto end_locked(const CancelReason& why);
  Held try_hold() { return weak_from_this().lock(); }

  // Ends the node. The goroutine stays on its thread, for the reason of StopAsker below. The node
  // may die here, and this object with it.
  struct OnStop {
    std::weak_ptr<ContextNode> node;
    void operator()() const {
      ThreadLock here;
      if (Held alive = node.lock()) alive->cancel({ContextEnd::cancelled});
    }
  };

  // fixed once others know of it
  Held parent;  // null: the root
  DeadlineNs deadline;
  std::unique_ptr<ContextValue> value;
  std::optional<Timer> timer;
  std::optional<std::stop_callback<OnStop>> on_stop;

  flow::ContextEndWord how;  // [context-tree] written under lock, read by anyone
  sched::CancelSource source;

  InsideLock lock;
  // guarded by lock
  ContextNode* children = nullptr;
  std::exception_ptr cause;                        // of its end; null: none was given
  Chan<void> done = Chan<void>::nil();             // made when somebody asks for it
  std::stop_source stop_source{std::nostopstate};  // the same; if that was before the end it stays
  std::optional<Timer> later_timer;                // of later_run
  std::uint64_t later_run = 0;

  // guarded by the parent's lock
  ContextNode* next = nullptr;
  ContextNode* previous = nullptr;
  bool listed = false;

  Held link;                  // the cancel that took it off its parent's list
  bool asks_to_stop = false;  // the cancel that ends it: there was a stop_source
  Completing completing;      // between its end and the end of all below it

 private:
  void leave_parent();
};

// In a loop, not by recursion: a chain of contexts may be long.
ContextNode::~ContextNode() {
  if (timer) timer->stop();
  if (later_timer) later_timer->stop();
  leave_parent();
  Held up = std::move(parent);
  while (up != nullptr && up.use_count() == 1) {
    { Held again = up; }  // acquires what the threads did that let it go before
    up->leave_parent();
    Held above = std::move(up->parent);
    up = std::move(above);
  }
}

void ContextNode::leave_parent() {
  if (parent != nullptr) Tree::leave(*this, *parent);
}

// Cancelled with its parent from now on, or at once.
void ContextNode::join_parent() {
  if (parent == nullptr) return;
  ContextEnd already = Tree::add(*this, *parent);
  if (already != ContextEnd::none) cancel({already, parent->given_cause()});
}

void ContextNode::see_to_deadline() {
  notice_end();
  if (how.get() != ContextEnd::none || !source.is_unwatched()) return;
  std::uint64_t run;
  {
    sched::Presence presence;
    run = presence.generation();
    std::lock_guard hold(lock);
    if (run == 0 || later_run == run) return;
  }
  std::optional<Timer> made;
  try {
    auto left = std::chrono::nanoseconds(source.deadline_ns() - steady_now_ns());
    made = magpie::after_func(left, [weak = weak_from_this()] {
      if (auto alive = weak.lock()) alive->notice_end();
    });
  } catch (const std::logic_error&) {  // that run() has ended meanwhile
    return;
  }
  std::lock_guard hold(lock);
  if (later_run == run) return;
  later_timer.swap(made);
  later_run = run;
}

// The watch of its done() channel.
class DoneWatch final : public ChanWatch {
 public:
  explicit DoneWatch(std::weak_ptr<ContextNode> node) : node_(std::move(node)) {}
  DeadlineNs deadline() const override {
    ContextNode::Held alive = node_.lock();
    bool waits = alive != nullptr && alive->how.get() == ContextEnd::none;
    return waits ? alive->source.deadline_to_watch() : kNoDeadline;
  }
  void notice() override {
    ContextNode::Held alive = node_.lock();
    if (alive != nullptr && alive->source.has_expired_unseen())
      alive->cancel({ContextEnd::timed_out});
  }

 private:
  const std::weak_ptr<ContextNode> node_;
};

auto ContextNode::end_locked(const CancelReason& why) {
  if (how.get() == why.end) cause = why.cause;
  asks_to_stop = stop_source.stop_possible();
  // A channel or stop token that is made from now on is told by its maker.
  return [this, made_done = done] {
    (void)try_close(ChanAccess::core(made_done));  // a user may have closed it before
    source.end();
    if (timer) timer->stop();
  };
}

// Runs the callbacks of stop tokens. std::stop_source recognises the caller of a callback by its
// thread, and makes every other thread that destroys the callback wait. So while a callback waits,
// the goroutine must stay on its thread, and no other goroutine may run there.
class StopAsker {
 public:
  void operator()(ContextNode& node) {
    if (!node.asks_to_stop) return;
    if (!here_) here_.emplace();
    node.stop_source.request_stop();
  }

 private:
  std::optional<ThreadLock> here_;
};

void ContextNode::cancel(const CancelReason& why) { Tree::cancel(*this, why, StopAsker()); }

}  // namespace detail

using detail::ContextNode;
using detail::DeadlineNs;
using detail::kNoDeadline;
using flow::ContextEnd;

Context Context::background() { return Context(nullptr); }

Context Context::with_cancel() const {
  if (node_ != nullptr) node_->notice_end();
  auto node = std::make_shared<ContextNode>(node_);
  node->join_parent();
  return Context(std::move(node));
}

Context Context::with_stop_token(std::stop_token token) const {
  Context made = with_cancel();
  made.node_->on_stop.emplace(std::move(token), ContextNode::OnStop{made.node_});
  return made;
}

Context Context::with_kept(std::unique_ptr<detail::ContextValue> value) const {
  if (node_ != nullptr) node_->notice_end();
  auto node = std::make_shared<ContextNode>(node_);
  node->value = std::move(value);
  node->join_parent();
  return Context(std::move(node));
}

Context Context::with_deadline_ns(DeadlineNs deadline) const {
  if (node_ != nullptr) node_->notice_end();
  auto node = std::make_shared<ContextNode>(node_);
  if (deadline < node->deadline) {
    node->deadline = deadline;
    if (deadline > detail::steady_now_ns()) {
      auto cancel_late = [weak = std::weak_ptr(node)] {
        if (auto alive = weak.lock()) alive->cancel({ContextEnd::timed_out});
      };
      // It must be there before its function can run, which looks at it.
      auto in_time = std::chrono::nanoseconds(deadline - detail::steady_now_ns());
      node->timer = magpie::after_func(std::chrono::nanoseconds::max(), cancel_late);
      {
        sched::Presence
            presence;  // the timer is of this run(), or there is none and reset() says so
        node->source.set_deadline(deadline, presence.generation());
      }
      node->timer->reset(in_time);
    }
  }
  node->join_parent();
  if (node->deadline <= detail::steady_now_ns()) node->cancel({ContextEnd::timed_out});
  return Context(std::move(node));
}

const void* Context::find_value(const std::type_info& key_type, const void* key,
                                const std::type_info& value_type) const {
  for (const ContextNode* node = node_.get(); node != nullptr; node = node->parent.get()) {
    if (node->value == nullptr || !node->value->has_key(key_type, key)) continue;
    return node->value->value_as(value_type);
  }
  return nullptr;
}

Chan<void> Context::done() const {
  if (node_ == nullptr) return Chan<void>::nil();
  node_->notice_end();
  {
    std::lock_guard hold(node_->lock);
    if (node_->done != Chan<void>::nil()) return node_->done;
  }
  Chan<void> fresh;
  if (node_->deadline != kNoDeadline) {
    detail::set_watch(detail::ChanAccess::core(fresh), std::make_unique<detail::DoneWatch>(node_));
  }
  std::unique_lock hold(node_->lock);
  if (node_->done == Chan<void>::nil()) {
    node_->done = fresh;
    if (node_->how.get() != ContextEnd::none) fresh.close();  // nobody waits for it yet
  }
  return node_->done;
}

std::error_code Context::err() const noexcept {
  switch (node_ == nullptr ? ContextEnd::none : node_->end()) {
    case ContextEnd::none:
      return {};
    case ContextEnd::cancelled:
      return std::make_error_code(std::errc::operation_canceled);
    case ContextEnd::timed_out:
      return std::make_error_code(std::errc::timed_out);
  }
  return {};
}

namespace detail {

sched::CancelSource* source_of(const Context& context) noexcept {
  return context.node_ == nullptr ? nullptr : &context.node_->source;
}

std::error_code end_of(const Context& context) {
  ContextNode* node = context.node_.get();
  if (node != nullptr && node->how.get() == ContextEnd::none && node->source.has_expired_unseen())
    node->cancel({ContextEnd::timed_out});
  return context.err();
}

std::int64_t time_to_watch(const Context& context) noexcept {
  if (context.node_ == nullptr) return kNoDeadline;
  std::int64_t deadline_ns = context.node_->source.deadline_to_watch();
  if (deadline_ns == sched::kNever) return kNoDeadline;
  return std::max<std::int64_t>(deadline_ns - steady_now_ns(), 0);
}

void throw_over(std::error_code why, const char* call) {
  throw std::system_error(why, std::string("magpie: ") + call);
}

}  // namespace detail

void Context::cancel(std::exception_ptr cause) const {
  if (node_ == nullptr)
    throw std::logic_error("magpie: the background context cannot be cancelled; use with_cancel()");
  // A goroutine that it wakes may destroy this handle, which may be the last.
  std::shared_ptr<ContextNode> node = node_;
  node->cancel({ContextEnd::cancelled, std::move(cause)});
}

std::exception_ptr Context::cause() const {
  std::error_code why = err();
  if (!why) return nullptr;
  if (std::exception_ptr given = node_->given_cause()) return given;
  return std::make_exception_ptr(std::system_error(why, "magpie: Context::cause"));
}

std::optional<TimePoint> Context::deadline() const noexcept {
  if (node_ == nullptr || node_->deadline == kNoDeadline) return std::nullopt;
  return TimePoint(std::chrono::nanoseconds(node_->deadline));
}

std::stop_token Context::stop_token() const {
  if (node_ == nullptr) return {};
  node_->see_to_deadline();
  std::stop_source fresh;
  std::lock_guard hold(node_->lock);
  if (!node_->stop_source.stop_possible()) {
    node_->stop_source = fresh;
    if (node_->how.get() != ContextEnd::none) fresh.request_stop();  // it has no callbacks yet
  }
  return node_->stop_source.get_token();
}

// Its callback does not wait: it only starts a goroutine.
struct AfterFunc::State {
  struct Start {
    State* state;
    void operator()() const noexcept { state->start(); }
  };

  State(Context its, detail::SharedFunction<void()> f)
      : context(std::move(its)), function(std::move(f)) {}

  void start() noexcept {
    started = true;
    detail::SharedFunction<void()> f = function;  // which may destroy the State
    try {
      go([f] { f(); });
    } catch (const std::exception&) {  // no runtime runs, or memory is short
      f();
    }
  }

  Context context;  // kept alive, so that its deadline counts
  detail::SharedFunction<void()> function;
  bool started = false;  // by the callback; read when there is no callback any more
  std::optional<std::stop_callback<Start>> callback;
};

AfterFunc::AfterFunc(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
AfterFunc::AfterFunc(AfterFunc&&) noexcept = default;
AfterFunc& AfterFunc::operator=(AfterFunc&&) noexcept = default;
AfterFunc::~AfterFunc() = default;

bool AfterFunc::stop() {
  if (state_ == nullptr) return false;
  state_->callback.reset();
  bool kept_from_running = !state_->started;
  state_.reset();
  return kept_from_running;
}

AfterFunc Context::call_after(detail::SharedFunction<void()> f) const {
  auto state = std::make_unique<AfterFunc::State>(*this, std::move(f));
  state->callback.emplace(stop_token(), AfterFunc::State::Start{state.get()});
  return AfterFunc(std::move(state));
}

}  // namespace magpie
