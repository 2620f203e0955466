// context_tree_test.cc: what a cancel of many contexts asks of its nodes. How threads meet there:
// the model.

#include "flow/context_tree.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <mutex>

namespace magpie::flow {
namespace {

struct Node : std::enable_shared_from_this<Node> {
  using Held = std::shared_ptr<Node>;

  static inline int wholes = 0;  // that live
  static inline int begun = 0;
  struct Whole {
    Whole() { ++wholes, ++begun; }
    ~Whole() { --wholes; }
  };
  struct Completing {
    void add(int) {}
    void done() {}
    void wait() {}
  };

  ContextEnd kind_of_end(ContextEnd why) const { return why; }
  auto end_locked(ContextEnd) {
    EXPECT_EQ(wholes, 1);
    return [] { EXPECT_EQ(wholes, 1); };
  }
  Held try_hold() { return weak_from_this().lock(); }

  ContextEndWord how;
  std::mutex lock;
  Node* children = nullptr;
  Node* next = nullptr;
  Node* previous = nullptr;
  bool listed = false;
  Held link;
  Completing completing;
};

using Tree = ContextTree<Node>;

// Between two a goroutine could be dropped, and those that it has taken off their lists with it.
TEST(ContextTree, ACancelIsWholeFromTheFirstNodeToTheLast) {
  auto top = std::make_shared<Node>();
  std::array<std::shared_ptr<Node>, 4> below;
  for (auto& each : below) each = std::make_shared<Node>();
  ASSERT_EQ(Tree::add(*below[0], *top), ContextEnd::none);
  ASSERT_EQ(Tree::add(*below[1], *top), ContextEnd::none);
  ASSERT_EQ(Tree::add(*below[2], *below[0]), ContextEnd::none);
  ASSERT_EQ(Tree::add(*below[3], *below[1]), ContextEnd::none);
  int called_back = 0;
  Tree::cancel(*top, ContextEnd::cancelled, [&](Node&) {
    ++called_back;
    EXPECT_EQ(Node::wholes, 0);
  });
  EXPECT_EQ(called_back, 5);
  EXPECT_EQ(Node::begun, 1);
  for (auto& each : below) EXPECT_EQ(each->how.get(), ContextEnd::cancelled);
}

}  // namespace
}  // namespace magpie::flow
