// Model of [grown-table]: a table grows, and the number in use changes, while others read it.
//
// Checked   What is below the count that a reader got is there and filled; an array is filled by
//           the writer and read by others without an access that nothing orders.
// Bounds    One reader: every interleaving. Two: at most four preemptions, and random executions.
//
// Mutant MUTANT_RELAXED_RELEASE   a reader does not see what is in the array
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_COUNT_FIRST       the number in use comes before the array
// Mutant MUTANT_FILLED_LATE       the array is published before it is filled
#include "model_run.h"

#include "sched/core/published_table.h"

namespace {

using model::chosen;

template <unsigned readers>
struct Growing : model::Scenario<1 + readers> {
  using Element = rl::var<int>;
  static constexpr int kMost = 2;
  Element small[kMost], large[kMost];  // only the first of the small one is ever filled
  magpie::sched::PublishedTable<Element> table;

  void before() override {
    small[0](RL_INFO) = 1;
    table.publish(small, 1);
    table.set_in_use(1);
  }
  void thread(unsigned index) override {
    if (index != 0) return read();
    if (chosen<"MUTANT_COUNT_FIRST">()) table.set_in_use(2);
    if (chosen<"MUTANT_FILLED_LATE">()) table.publish(large, 2);
    large[0](RL_INFO) = 1;
    large[1](RL_INFO) = 2;
    if (!chosen<"MUTANT_FILLED_LATE">()) table.publish(large, 2);
    table.set_in_use(2);
    table.set_in_use(1);
  }
  void read() {
    look_at(table.in_use());
    look_at(table.all());
  }
  void look_at(typename magpie::sched::PublishedTable<Element>::View view) {
    for (std::size_t i = 0; i < view.count; ++i)
      RL_ASSERT(view.first[i](RL_INFO) == static_cast<int>(i + 1));
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Growing<1>>("one reads", model::full())
      .explore<Growing<2>>("two read", model::bounded(4))
      .explore<Growing<2>>("two read", model::random(200'000))
      .report();
}
