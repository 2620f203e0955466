// context.cc: the tree of contexts.
//
//   A child holds its parent, a parent knows its children by a list that they leave when they die. Whoever cancels
//   marks a node under its lock, takes its children out, and goes on with them; nothing is told while a lock is
//   held. A child that is dying waits for the parent's lock to leave the list, so whoever holds the lock may look at it;
//   it is only taken along if it can still be shared.
#include <magpie/context.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "base/atomic.h"
#include "base/lock.h"

namespace magpie {
namespace detail {

enum class ContextEnd : std::uint8_t { none, cancelled, timed_out };

struct ContextNode : std::enable_shared_from_this<ContextNode> {
  explicit ContextNode(std::shared_ptr<ContextNode> above)
      : parent(std::move(above)), deadline(parent ? parent->deadline : kNoDeadline) {}
  ~ContextNode();

  ContextEnd end() const { return how.load(base::acquire); }  // with mark()'s release

  void cancel(ContextEnd why);
  void join_parent();

  // fixed once others know of it
  std::shared_ptr<ContextNode> parent;  // null: the root
  DeadlineNs deadline;
  std::unique_ptr<ContextValue> value;
  std::optional<Timer> timer;

  // atomic, unproven: written under lock, once; the context tree
  base::Atomic<ContextEnd> how{ContextEnd::none};

  base::Lock lock;
  // guarded by lock
  ContextNode* children = nullptr;
  Chan<void> done = Chan<void>::nil();             // made when somebody asks for it
  std::stop_source stop_source{std::nostopstate};  // the same

  // guarded by the parent's lock
  ContextNode* next = nullptr;
  ContextNode* previous = nullptr;
  bool listed = false;

  // whoever cancels the parent
  std::shared_ptr<ContextNode> next_to_cancel;

 private:
  void leave_parent();
  void mark_and_tell(ContextEnd why, std::shared_ptr<ContextNode>& more);
};

// In a loop, not by recursion: a chain of contexts may be long.
ContextNode::~ContextNode() {
  if (timer) timer->stop();
  leave_parent();
  std::shared_ptr<ContextNode> up = std::move(parent);
  while (up != nullptr && up.use_count() == 1) {
    { std::shared_ptr<ContextNode> again = up; }  // acquires what those did who let it go before
    up->leave_parent();
    std::shared_ptr<ContextNode> above = std::move(up->parent);
    up = std::move(above);
  }
}

void ContextNode::leave_parent() {
  if (parent == nullptr) return;
  std::lock_guard hold(parent->lock);
  if (!listed) return;
  (previous == nullptr ? parent->children : previous->next) = next;
  if (next != nullptr) next->previous = previous;
  listed = false;
}

// Cancelled with its parent from now on, or at once.
void ContextNode::join_parent() {
  if (parent == nullptr) return;
  parent->lock.lock();
  ContextEnd already = parent->end();
  if (already == ContextEnd::none) {
    next = parent->children;
    if (next != nullptr) next->previous = this;
    parent->children = this;
    listed = true;
  }
  parent->lock.unlock();
  if (already != ContextEnd::none) cancel(already);
}

// It is over, and whoever waits for that is told; puts its children before `more`. Nothing if it was over before.
void ContextNode::mark_and_tell(ContextEnd why, std::shared_ptr<ContextNode>& more) {
  lock.lock();
  if (end() != ContextEnd::none) {
    lock.unlock();
    return;
  }
  how.store(why, base::release);  // before done closes; with end()
  for (ContextNode* child = std::exchange(children, nullptr); child != nullptr;) {
    ContextNode* following = child->next;
    child->listed = false;
    if (std::shared_ptr<ContextNode> alive = child->weak_from_this().lock()) {
      alive->next_to_cancel = std::move(more);
      more = std::move(alive);
    }
    child = following;
  }
  // Those that are made from now on are told by whoever makes them.
  Chan<void> made_done = done;
  std::stop_source made_source = stop_source;
  lock.unlock();

  if (made_done != Chan<void>::nil()) made_done.close();
  if (timer) timer->stop();
  made_source.request_stop();
}

void ContextNode::cancel(ContextEnd why) {
  std::shared_ptr<ContextNode> more;
  mark_and_tell(why, more);
  while (more != nullptr) {
    std::shared_ptr<ContextNode> node = std::move(more);
    more = std::move(node->next_to_cancel);
    node->mark_and_tell(why, more);
  }
}

}  // namespace detail

using detail::ContextEnd;
using detail::ContextNode;
using detail::DeadlineNs;
using detail::kNoDeadline;

Context Context::background() { return Context(nullptr); }

Context Context::with_cancel() const {
  auto node = std::make_shared<ContextNode>(node_);
  node->join_parent();
  return Context(std::move(node));
}

Context Context::with_kept(std::unique_ptr<detail::ContextValue> value) const {
  auto node = std::make_shared<ContextNode>(node_);
  node->value = std::move(value);
  node->join_parent();
  return Context(std::move(node));
}

Context Context::with_deadline_ns(DeadlineNs deadline) const {
  auto node = std::make_shared<ContextNode>(node_);
  if (deadline < node->deadline) {
    node->deadline = deadline;
    if (deadline > detail::steady_now_ns()) {
      auto cancel_late = [weak = std::weak_ptr(node)] {
        if (auto alive = weak.lock()) alive->cancel(ContextEnd::timed_out);
      };
      node->timer =
          after_func(std::chrono::nanoseconds(deadline - detail::steady_now_ns()), cancel_late);
    }
  }
  node->join_parent();
  if (node->deadline <= detail::steady_now_ns()) node->cancel(ContextEnd::timed_out);
  return Context(std::move(node));
}

const void* Context::find_value(const std::type_info& key_type, const void* key,
                                const std::type_info& value_type) const {
  for (const ContextNode* node = node_.get(); node != nullptr; node = node->parent.get()) {
    if (node->value == nullptr) continue;
    if (const void* found = node->value->find(key_type, key, value_type)) return found;
  }
  return nullptr;
}

Chan<void> Context::done() const {
  if (node_ == nullptr) return Chan<void>::nil();
  {
    std::lock_guard hold(node_->lock);
    if (node_->done != Chan<void>::nil()) return node_->done;
  }
  Chan<void> fresh;
  std::unique_lock hold(node_->lock);
  if (node_->done == Chan<void>::nil()) {
    node_->done = fresh;
    if (node_->end() != ContextEnd::none) fresh.close();  // nobody waits for it yet
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

void Context::cancel() const {
  if (node_ == nullptr)
    throw std::logic_error("magpie: the background context cannot be cancelled; use with_cancel()");
  node_->cancel(ContextEnd::cancelled);
}

std::optional<TimePoint> Context::deadline() const noexcept {
  if (node_ == nullptr || node_->deadline == kNoDeadline) return std::nullopt;
  return TimePoint(std::chrono::nanoseconds(node_->deadline));
}

std::stop_token Context::stop_token() const {
  if (node_ == nullptr) return {};
  std::stop_source fresh;
  std::lock_guard hold(node_->lock);
  if (!node_->stop_source.stop_possible()) {
    node_->stop_source = fresh;
    if (node_->end() != ContextEnd::none) fresh.request_stop();  // it has no callbacks yet
  }
  return node_->stop_source.get_token();
}

}  // namespace magpie
