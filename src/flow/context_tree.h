// context_tree.h: contexts that are cancelled together.
//
// Protocol  [context-tree]
//   A node is alive or over. It keeps its parent alive, and is in the parent's list of children
//   until it dies or the parent is over. The node's lock guards its list and its end.
//
//   add       under the parent's lock: puts the child on the list. If the parent is over, the
//             caller cancels the child at once.
//   leave     a dying child, under the parent's lock: off the list, if it is still there.
//   cancel    1. Under the node's lock: the node is over, and its children are taken off its list;
//                the children that are not dying are kept alive. done() closes. Then the same for
//                each child, and for theirs.
//             2. Another cancel may have ended some of them before: waits until those are complete.
//             3. All are complete.
//             4. Runs the callbacks of stop tokens, which may do anything.
//             Step 1 is whole: the end of run() does not drop a goroutine in it. If the node was
//             over before step 1, cancel waits until it is complete.
//
// No loss   add and step 1 look at the list under the same lock. So cancel takes the child along,
//           or add says that it came too late.
// All       So when cancel returns, everything below the node is over, no matter which cancel came
//           first: *complete* says just that. Waiting goes down the tree only, and never for a
//           callback, so there is no cycle.
// Lifetime  A child on the list exists while the list's lock is held: it has to leave before it
//           goes. To look at it longer, share it. A node is taken off a list once, and the taker
//           owns its link, so no two calls use the same link.
// Orders    [context-tree] the end is stored with release under the lock and loaded with acquire by
//           anyone: a thread that sees the end sees what came before the cancel.
// Proof     tests/model/context_tree_model.cc
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "base/atomic.h"

namespace magpie::flow {

enum class ContextEnd : std::uint8_t { none, cancelled, timed_out };

// How a node is over.
class ContextEndWord {
 public:
  ContextEnd get() const {
    return static_cast<ContextEnd>(word_.load(base::acquire));
  }  // with set()
  // Under the node's lock.
  void set(ContextEnd why) { word_.store(static_cast<std::uint8_t>(why), base::release); }

 private:
  base::Atomic<std::uint8_t> word_{0};  // atomic [context-tree]
};

// Node has: Held, a pointer that keeps a node alive; how, a ContextEndWord; lock; children, next,
// previous, listed, link; completing, with add(1), done() and wait() of a WaitGroup; and
//   Whole                  while one lives, a goroutine that cancels is not dropped
//   kind_of_end(why)       how it is over, if it is by a cancel for this reason
//   end_locked(why)        it is over now; returns what to call when the lock is released
//   try_hold()             empty: it is dying
template <class Node>
class ContextTree {
  using Held = typename Node::Held;

 public:
  // none: it is cancelled with its parent from now on. Else the parent is over.
  [[nodiscard]] static ContextEnd add(Node& child, Node& parent) {
    std::lock_guard hold(parent.lock);
    ContextEnd already = parent.how.get();
    if (already != ContextEnd::none) return already;
    Node* first = parent.children;
    child.next = first;
    child.previous = nullptr;
    if (first != nullptr) first->previous = &child;
    parent.children = &child;
    child.listed = true;
    return ContextEnd::none;
  }

  static void leave(Node& child, Node& parent) {
    std::lock_guard hold(parent.lock);
    if (!child.listed) return;
    Node* before = child.previous;
    Node* after = child.next;
    if (before != nullptr) {
      before->next = after;
    } else {
      parent.children = after;
    }
    if (after != nullptr) after->previous = before;
    child.listed = false;
  }

  // When it returns everything from `top` down is over. `call_back(node)` is called after that for
  // each node that is over by this call. What `why` is, the node knows.
  template <class Why, class CallBack>
  static void cancel(Node& top, const Why& why, CallBack call_back) {
    NodeList ended, ended_by_others;
    if (!end_all(top, why, ended, ended_by_others)) {
      top.completing.wait();
      return;
    }
    while (Held node = ended_by_others.take_first()) node->completing.wait();
    top.completing.done();
    for (Node* node = ended.first(); node != nullptr; node = NodeList::next_of(*node))
      node->completing.done();
    call_back(top);
    while (Held node = ended.take_first()) call_back(*node);
  }

 private:
  // Of nodes that this call has taken off their lists. No recursion: it may be long.
  class NodeList {
   public:
    void append(Held node) {
      Node* last = node.get();
      (last_ != nullptr ? last_->link : first_) = std::move(node);
      last_ = last;
    }
    Held take_first() {
      Held node = std::move(first_);
      if (node != nullptr) first_ = std::move(node->link);
      if (first_ == nullptr) last_ = nullptr;
      return node;
    }
    Node* first() const { return first_.get(); }
    static Node* next_of(const Node& node) { return node.link.get(); }

   private:
    Held first_{};
    Node* last_ = nullptr;
  };

  // Whole from the first to the last: no other thread could find the nodes that have been taken off
  // their lists. False: `top` was over before.
  template <class Why>
  static bool end_all(Node& top, const Why& why, NodeList& ended, NodeList& ended_by_others) {
    [[maybe_unused]] typename Node::Whole whole;
    NodeList to_do;
    if (!end_and_take_children(top, why, to_do)) return false;
    while (Held node = to_do.take_first()) {
      NodeList& list = end_and_take_children(*node, why, to_do) ? ended : ended_by_others;
      list.append(std::move(node));
    }
    return true;
  }

  // False: it was over before.
  template <class Why>
  static bool end_and_take_children(Node& node, const Why& why, NodeList& to_do) {
    std::unique_lock hold(node.lock);
    if (node.how.get() != ContextEnd::none) return false;
    node.completing.add(1);
    node.how.set(node.kind_of_end(why));
    auto tell = node.end_locked(why);
    Node* child = node.children;
    node.children = nullptr;
    while (child != nullptr) {
      Node* following = child->next;
      child->listed = false;
      if (Held alive = child->try_hold(); alive != nullptr) to_do.append(std::move(alive));
      child = following;
    }
    hold.unlock();
    tell();
    return true;
  }
};

}  // namespace magpie::flow
