// branch_protection_test.cc: AArch64 with marked branch targets: a jump to a place without a mark
// is an illegal instruction.
//
// A program is checked as a whole if all it is made of is marked; the C library's first object
// often is not. So the test turns the check on itself, for the program's own code.

#if defined(__aarch64__) && defined(__ARM_FEATURE_BTI_DEFAULT)

#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "side.h"

namespace magpie::context {
namespace {

constexpr int kProtBti = 0x10;

struct Code {
  void* begin = nullptr;
  std::size_t size = 0;
};

// The executable is the first to be listed.
Code own_code() {
  Code found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          const std::uintptr_t from = (info->dlpi_addr + part.p_vaddr) & ~(page - 1);
          const std::uintptr_t to = info->dlpi_addr + part.p_vaddr + part.p_memsz;
          *static_cast<Code*>(result) = {reinterpret_cast<void*>(from), to - from};
        }
        return 1;
      },
      &found);
  return found;
}

TEST(BranchProtection, TheSwitchJumpsToMarkedPlacesOnly) {
  const Code code = own_code();
  ASSERT_NE(code.begin, nullptr);
  if (mprotect(code.begin, code.size, PROT_READ | PROT_EXEC | kProtBti) != 0)
    GTEST_SKIP() << "the processor or the system has no BTI";
  Side here;
  int visits = 0;
  Side* there_at = nullptr;
  Side there([&](void*) {
    ++visits;
    switch_sides(*there_at, here, nullptr);
    ++visits;
  });
  there_at = &there;
  switch_sides(here, there, nullptr);
  switch_sides(here, there, nullptr);
  mprotect(code.begin, code.size, PROT_READ | PROT_EXEC);
  EXPECT_EQ(visits, 2);
  EXPECT_TRUE(there.is_over());
}

}  // namespace
}  // namespace magpie::context

#endif
