// at_procs.h: tests that start their runtimes themselves, with options of their own, at several
// numbers of procs.
//
//   class Fairness : public support::AtProcs {};
//   INSTANTIATE_TEST_SUITE_P(AtProcs, Fairness, support::kFewProcs,
//   testing::PrintToStringParamName());
#pragma once

#include <gtest/gtest.h>

namespace magpie::support {

class AtProcs : public testing::TestWithParam<int> {
 protected:
  int procs() const { return GetParam(); }
};

inline const auto kFewProcs = testing::Values(1, 2, 4);

}  // namespace magpie::support
