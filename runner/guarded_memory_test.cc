#include "runner/guarded_memory.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

TEST(GuardedMemoryTest, AlignsAndKeepsItsBytes) {
  for (size_t bytes : {1, 63, 64, 65, 4095, 4096, 4097, 1 << 20}) {
    for (size_t alignment : {64, 128, 4096}) {
      ASSERT_OK_AND_ASSIGN(auto memory, GuardedMemory::Allocate("x", bytes, alignment));
      ASSERT_EQ(memory->bytes().size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->bytes().data()) % alignment, 0u);
      std::memset(memory->bytes().data(), 1, bytes);
      EXPECT_OK(memory->CheckGuards());
    }
  }
}

TEST(GuardedMemoryTest, NearWritesAreFoundAndNamed) {
  ASSERT_OK_AND_ASSIGN(auto memory, GuardedMemory::Allocate("conv", 100, 64));
  std::byte* bytes = memory->bytes().data();
  bytes[100] = std::byte{1};
  EXPECT_THAT(memory->CheckGuards(),
              StatusIs(StatusCode::kInternal, HasSubstr("'conv': 0 bytes after")));
  // The canaries were restored.
  EXPECT_OK(memory->CheckGuards());
  bytes[127] = std::byte{1};
  EXPECT_THAT(memory->CheckGuards(), StatusIs(StatusCode::kInternal, HasSubstr("27 bytes after")));
  bytes[-1] = std::byte{1};
  EXPECT_THAT(memory->CheckGuards(), StatusIs(StatusCode::kInternal, HasSubstr("1 bytes before")));
  bytes[-60] = std::byte{1};
  EXPECT_THAT(memory->CheckGuards(), StatusIs(StatusCode::kInternal, HasSubstr("60 bytes before")));
}

TEST(GuardedMemoryTest, FarAccessesFault) {
  ASSERT_OK_AND_ASSIGN(auto memory, GuardedMemory::Allocate("conv", 4096, 64));
  volatile std::byte* bytes = memory->bytes().data();
  EXPECT_DEATH(bytes[4096] = std::byte{1}, "");
  EXPECT_DEATH(bytes[4096 + 900'000] = std::byte{1}, "");
  EXPECT_DEATH(bytes[-500'000] = std::byte{1}, "");
}

TEST(GuardedMemoryTest, DescribesAddresses) {
  ASSERT_OK_AND_ASSIGN(auto memory, GuardedMemory::Allocate("conv", 4096, 64));
  const std::byte* bytes = memory->bytes().data();
  char text[100];
  ASSERT_TRUE(DescribeAddress(bytes + 4096, text, sizeof(text)));
  EXPECT_STREQ(text, "0 bytes after the end of argument 'conv'");
  ASSERT_TRUE(DescribeAddress(bytes - 100'000, text, sizeof(text)));
  EXPECT_STREQ(text, "100000 bytes before the start of argument 'conv'");
  ASSERT_TRUE(DescribeAddress(bytes + 7, text, 12));
  EXPECT_STREQ(text, "7 bytes int") << "cut to the space there is";
  memory.reset();
  EXPECT_FALSE(DescribeAddress(bytes, text, sizeof(text)));
}

// Returns how a fork that reads the first byte ends: 0, or the signal.
int EndOfForkThatReads(const GuardedMemory& memory) {
  const volatile std::byte* bytes = memory.bytes().data();
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGSEGV, SIG_DFL);
    [[maybe_unused]] const std::byte first = bytes[0];
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(GuardedMemoryTest, ForksHaveItOnlyIfTheyInheritIt) {
  ASSERT_OK_AND_ASSIGN(auto memory, GuardedMemory::Allocate("conv", 4096, 64));
  EXPECT_EQ(EndOfForkThatReads(*memory), 0);
  memory->InheritByFork(false);
  EXPECT_EQ(EndOfForkThatReads(*memory), SIGSEGV);
  memory->InheritByFork(true);
  EXPECT_EQ(EndOfForkThatReads(*memory), 0);
}

// Returns the first byte, once a fork has set it to 1.
std::byte FirstByteAfterForkThatWrites(GuardedMemory& memory) {
  memory.bytes()[0] = std::byte{0};
  const pid_t pid = fork();
  if (pid == 0) {
    memory.bytes()[0] = std::byte{1};
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  return memory.bytes()[0];
}

TEST(GuardedMemoryTest, SharedMemoryShowsWhatForksWrite) {
  ASSERT_OK_AND_ASSIGN(auto copied, GuardedMemory::Allocate("conv", 100, 64));
  EXPECT_EQ(FirstByteAfterForkThatWrites(*copied), std::byte{0});
  ASSERT_OK_AND_ASSIGN(auto shared,
                       GuardedMemory::Allocate("conv", 100, 64, GuardedMemory::Sharing::kShared));
  EXPECT_EQ(FirstByteAfterForkThatWrites(*shared), std::byte{1});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(shared->bytes().data()) % 64, 0u);
  shared->bytes().data()[100] = std::byte{1};
  EXPECT_THAT(shared->CheckGuards(), StatusIs(StatusCode::kInternal, HasSubstr("0 bytes after")));
  shared->InheritByFork(false);
  EXPECT_EQ(EndOfForkThatReads(*shared), SIGSEGV);
}

TEST(GuardedMemoryTest, WhatIsForgottenIsNotDescribed) {
  ASSERT_OK_AND_ASSIGN(auto kept, GuardedMemory::Allocate("kept", 4096, 64));
  ASSERT_OK_AND_ASSIGN(auto other, GuardedMemory::Allocate("other", 4096, 64));
  GuardedMemory::ForgetAllBut({kept.get()});
  char text[100];
  EXPECT_TRUE(DescribeAddress(kept->bytes().data(), text, sizeof(text)));
  EXPECT_FALSE(DescribeAddress(other->bytes().data(), text, sizeof(text)));
}

TEST(GuardedMemoryTest, MoreThanThereIsIsRefused) {
  EXPECT_THAT(GuardedMemory::Allocate("huge", size_t{1} << 60, 64),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("'huge'")));
}

}  // namespace
}  // namespace kiln::runner
