// Model of [trace-block]: a stream writes events to blocks that are used again, while a snapshot
// copies them.
//
// Checked   What the copier reads of a pinned block was written before it was published, and is not
//           overwritten meanwhile: no access that nothing orders, and only values of one use of the
//           block, in their order.
// Bounds    One writer with two or three blocks and one copier: at most three preemptions, and
//           random executions.
//
// Mutant MUTANT_RELAXED_RELEASE   the copier does not see the bytes
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_LENGTH_FIRST      the length is published before the bytes
// Mutant MUTANT_NO_PIN            the block is used again while it is copied
#include "model_run.h"

#include "model_futex.h"
#include "trace/blocks.h"

namespace {

using magpie::trace::Block;
using magpie::trace::Blocks;
using model::chosen;

template <int count>
struct Copying : model::Scenario<2> {
  static constexpr int kCells = 2;
  model::Futex kernel;
  Blocks blocks;
  Block block[count];
  rl::var<int> cell[count][kCells];

  void before() override {
    blocks.set_when_short(Blocks::WhenShort::recycle);
    for (Block& one : block) blocks.add(&one);
  }

  void thread(unsigned index) override {
    if (index == 0) {
      write();
    } else {
      copy();
    }
  }

  void write() {
    Block* mine = nullptr;
    int value = 0;
    for (int use = 0; use < count + 1; ++use) {
      mine = blocks.exchange(mine, 0, 0);
      if (mine == nullptr) return;
      for (int i = 0; i < kCells; ++i) {
        auto length = static_cast<std::uint32_t>(i + 1);
        if (chosen<"MUTANT_LENGTH_FIRST">()) mine->publish(length);
        cell[mine - block][i](RL_INFO) = ++value;
        if (!chosen<"MUTANT_LENGTH_FIRST">()) mine->publish(length);
      }
    }
  }

  void copy() {
    for (Block& one : block) {
      std::uint64_t sequence = blocks.sequence_of(&one);
      if (sequence == 0) continue;
      if (!chosen<"MUTANT_NO_PIN">() && !blocks.pin(&one, sequence)) continue;
      std::uint32_t length = one.used();
      int first = 0;
      for (std::uint32_t i = 0; i < length; ++i) {
        int value = cell[&one - block][i](RL_INFO);
        if (i == 0) first = value;
        RL_ASSERT(value == first + static_cast<int>(i));
      }
      if (!chosen<"MUTANT_NO_PIN">()) blocks.unpin(&one);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Copying<2>>("two blocks", model::bounded(3))
      .explore<Copying<3>>("three blocks", model::random(100'000))
      .report();
}
