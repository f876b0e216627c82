#include "runner/checked_program.h"

#include <cstring>

#include "base/status_testing.h"
#include "runner/cpu_device.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

Argument Floats(const std::string& name, int64_t count, v1::ArgSpec::Role role) {
  Argument argument;
  argument.name = name;
  argument.shape = {count};
  argument.role = role;
  argument.elements = count;
  argument.bytes = 4 * count;
  return argument;
}

std::vector<Argument> Arguments(int64_t count) {
  return {Floats("a", count, v1::ArgSpec::INPUT), Floats("out", count, v1::ArgSpec::OUTPUT),
          Floats("scratch", count, v1::ArgSpec::WORKSPACE)};
}

class CheckedProgramTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = MakeCpuDevice({.threads = 1, .pin = false});
  BufferCache cache_{1 << 20};
  const Bench bench_{*device_, cache_};
};

TEST_F(CheckedProgramTest, ProgramsOfAWorkloadShareTheirInputs) {
  CheckedProgram first, second, seeded;
  ASSERT_OK(PrepareArguments(bench_, Arguments(24), 1, 3, first));
  ASSERT_OK(PrepareArguments(bench_, Arguments(24), 1, 3, second));
  ASSERT_OK(PrepareArguments(bench_, Arguments(24), 2, 3, seeded));
  ASSERT_EQ(first.args.size(), 3u);
  EXPECT_EQ(first.args[0], second.args[0]);
  EXPECT_NE(first.args[0], seeded.args[0]);
  EXPECT_NE(first.args[1], second.args[1]);
  EXPECT_EQ(first.outputs, std::vector<Buffer*>{first.args[1]});
  EXPECT_EQ(first.owned.size(), 2u);
  EXPECT_NE(first.inputs[0].other, nullptr);
}

TEST_F(CheckedProgramTest, AForgottenInputIsFilledAnew) {
  CheckedProgram first, second;
  ASSERT_OK(PrepareArguments(bench_, Arguments(24), 1, 3, first));
  ForgetInput(bench_, first.inputs[0]);
  ASSERT_OK(PrepareArguments(bench_, Arguments(24), 1, 3, second));
  EXPECT_NE(first.args[0], second.args[0]);
  EXPECT_EQ(first.inputs[0].shown, second.inputs[0].shown);
}

TEST_F(CheckedProgramTest, MoreThanTheMemoryIsRefused) {
  CheckedProgram checked;
  EXPECT_THAT(PrepareArguments(bench_, Arguments(int64_t{1} << 42), 1, 3, checked),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("with 3 copies more")));
}

}  // namespace
}  // namespace kiln::runner
