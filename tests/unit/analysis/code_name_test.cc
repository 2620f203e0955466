// code_name_test.cc: names as users know them.

#include "analysis/code_name.h"

#include <gtest/gtest.h>

namespace magpie::analysis {
namespace {

TEST(CodeName, TheUsersFunctionIsFoundInOurs) {
  EXPECT_EQ(
      user_code_name("magpie::detail::start_detached<magpie::WaitGroup::go<main::{lambda()#1}::"
                     "operator()() const::{lambda()#4}>(main::{lambda()#1}::operator()() const::"
                     "{lambda()#4}&&)::{lambda()#1}>(magpie::GoOptions const*)::{lambda(void*, "
                     "magpie::detail::TaskOrder)#1}::_FUN(void*, magpie::detail::TaskOrder)"),
      "main::{lambda()#1}::{lambda()#4}");
  EXPECT_EQ(user_code_name("magpie::detail::start_joinable<int, app::Worker>(app::Worker&&)"),
            "app::Worker");
}

TEST(CodeName, OtherNamesStay) {
  EXPECT_EQ(user_code_name("app::serve(std::vector<int>)"), "app::serve(std::vector<int>)");
  EXPECT_EQ(user_code_name("magpie::sched::main_body(void*)"), "magpie::sched::main_body(void*)");
  EXPECT_EQ(user_code_name("magpie::broken<"), "magpie::broken<");
  EXPECT_EQ(user_code_name(""), "");
}

}  // namespace
}  // namespace magpie::analysis
