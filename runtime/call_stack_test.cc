#include "runtime/call_stack.h"

#include <cfenv>
#include <cstdint>
#include <limits>
#include <thread>

#include "base/status_testing.h"
#include "runtime/float_environment.h"

namespace kiln::runtime {
namespace {

constexpr size_t kBytes = 32 << 20;

// Uses more stack than the main thread has, and returns a sum of what it wrote there.
[[gnu::noinline]] int64_t UseStack(int megabytes) {
  volatile char block[1 << 20];
  for (size_t i = 0; i < sizeof(block); i += 512) block[i] = static_cast<char>(megabytes);
  const int64_t below = megabytes > 1 ? UseStack(megabytes - 1) : 0;
  return below + block[512 * static_cast<size_t>(megabytes)];
}

struct Body {
  std::thread::id thread;
  const void* local = nullptr;
  int64_t sum = 0;
  static void Run(void* closure) {
    Body& body = *static_cast<Body*>(closure);
    body.thread = std::this_thread::get_id();
    body.local = __builtin_frame_address(0);
    body.sum = UseStack(24);
  }
};

class CallStackTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!CallStack::IsSupported()) GTEST_SKIP() << "stacks are not changed here";
  }
};

TEST_F(CallStackTest, RunsOnTheCallingThreadWithMoreStackThanItHas) {
  ASSERT_OK_AND_ASSIGN(const CallStack stack, CallStack::Allocate(kBytes));
  for (int repeat = 0; repeat < 3; ++repeat) {
    Body body;
    stack.Call(Body::Run, &body);
    EXPECT_EQ(body.thread, std::this_thread::get_id());
    EXPECT_EQ(body.sum, 24 * 25 / 2);
    EXPECT_GT(std::abs(static_cast<const char*>(body.local) - reinterpret_cast<const char*>(&body)),
              std::ptrdiff_t{1} << 20);
  }
}

TEST_F(CallStackTest, ThePageBelowIsNotAccessible) {
  ASSERT_OK_AND_ASSIGN(const CallStack stack, CallStack::Allocate(4 << 20));
  EXPECT_DEATH(stack.Call([](void*) { UseStack(6); }, nullptr), "");
}

TEST_F(CallStackTest, TooMuchIsAnError) {
  EXPECT_THAT(CallStack::Allocate(size_t{1} << 60).status().ToString(),
              testing::HasSubstr("no memory for a stack of 1152921504606846976 bytes"));
}

TEST_F(CallStackTest, MovedStacksWork) {
  ASSERT_OK_AND_ASSIGN(CallStack first, CallStack::Allocate(kBytes));
  CallStack second(std::move(first));
  CallStack third;
  third = std::move(second);
  Body body;
  third.Call(Body::Run, &body);
  EXPECT_EQ(body.thread, std::this_thread::get_id());
}

TEST(FloatEnvironmentTest, ProgramsRoundToNearestAndTheCallerGetsItsOwnBack) {
  volatile double one = 1, three = 3;
  const double nearest = one / three;
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const double upward = one / three;
  {
    const FloatEnvironment floats;
    EXPECT_EQ(one / three, nearest);
    volatile double zero = 0;
    EXPECT_EQ(one / zero, std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(one / three, upward);
  EXPECT_GT(upward, nearest);
  // The division by zero within is no news for the caller.
  EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO), 0);
  std::fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
TEST(FloatEnvironmentTest, SubnormalNumbersAreKept) {
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | kFlushToZeroAndDenormalsAreZero);
  volatile float least = std::numeric_limits<float>::min(), half = 0.5F;
  EXPECT_EQ(least * half, 0);
  {
    const FloatEnvironment floats;
    EXPECT_GT(least * half, 0);
  }
  EXPECT_EQ(least * half, 0);
  __builtin_ia32_ldmxcsr(before);
}
#endif

}  // namespace
}  // namespace kiln::runtime
