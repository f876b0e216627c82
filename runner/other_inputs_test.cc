#include "runner/other_inputs.h"

#include "base/status_testing.h"
#include "runner/cpu_device.h"

namespace kiln::runner {
namespace {

class OtherInputsTest : public testing::Test {
 protected:
  void SetUp() override {
    Argument input;
    input.name = "a";
    input.shape = {100};
    input.elements = 100;
    input.bytes = 400;
    ASSERT_OK(PrepareArguments(bench_, {input}, 1, 0, checked_));
  }

  // Returns the checksum of what a program finds in the input.
  uint64_t Found() const {
    const auto sum = device_->Checksum(*checked_.args[0]);
    return sum.ok() ? *sum : 0;
  }

  std::unique_ptr<Device> device_ = MakeCpuDevice({.threads = 1, .pin = false});
  BufferCache cache_{1 << 20};
  const Bench bench_{*device_, cache_};
  CheckedProgram checked_;
};

TEST_F(OtherInputsTest, AreThereUntilTheyAreHidden) {
  const uint64_t usual = Found();
  OtherInputs other(bench_, checked_);
  ASSERT_OK(other.Show());
  EXPECT_NE(Found(), usual);
  EXPECT_EQ(Found(), checked_.inputs[0].shown);
  ASSERT_OK(other.Hide());
  EXPECT_EQ(Found(), usual);
  EXPECT_EQ(checked_.inputs[0].shown, usual);
}

TEST_F(OtherInputsTest, TheNextProgramFindsTheUsualContent) {
  const uint64_t usual = Found();
  {
    OtherInputs other(bench_, checked_);
    ASSERT_OK(other.Show());
  }
  EXPECT_EQ(Found(), usual);
  EXPECT_NE(cache_.Find(checked_.inputs[0].Key(Content::kTimed)), nullptr);
}

}  // namespace
}  // namespace kiln::runner
