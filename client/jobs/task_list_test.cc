#include "client/jobs/task_list.h"

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

TEST(TaskListTest, OperatorsAndFilesWithWeights) {
  const TempDir folder = *TempDir::Make("task-list");
  ASSERT_OK(WriteFile(folder.Join("double.te"), "input A: float32[8]\nB[i: 8] = A[i] * 2.0\n"));
  ASSERT_OK(WriteFile(folder.Join("net.txt"),
                      "# a network\n"
                      "2 matmul 8,8,8 bias,relu   # twice\n"
                      "\n"
                      "  0.5\tdouble.te\n"));
  ASSERT_OK_AND_ASSIGN(const auto tasks, LoadTaskList(folder.Join("net.txt")));
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].weight, 2);
  EXPECT_EQ(tasks[0].arguments.op, "matmul");
  EXPECT_EQ(tasks[0].arguments.args, "8,8,8");
  EXPECT_EQ(tasks[0].arguments.epilogue, "bias,relu");
  EXPECT_EQ(tasks[0].variants, "");
  EXPECT_EQ(tasks[1].weight, 0.5);
  EXPECT_EQ(tasks[1].arguments.op, folder.Join("double.te"));
}

TEST(TaskListTest, VariantsAndNetworks) {
  ASSERT_OK_AND_ASSIGN(const auto tasks,
                       ParseTaskList("1 conv2d_nhwc 1,8,8,4,4,3,3,1,1 variants=all relu network=a\n"
                                     "1 conv2d_nhwc network=b 1,8,8,4,4,3,3,1,1,groups=2\n",
                                     "net.txt", ""));
  EXPECT_EQ(tasks[0].variants, "all");
  EXPECT_EQ(tasks[0].network, "a");
  EXPECT_EQ(tasks[0].arguments.epilogue, "relu");
  EXPECT_EQ(tasks[1].variants, "");
  EXPECT_EQ(tasks[1].network, "b");
  EXPECT_EQ(tasks[1].arguments.args, "1,8,8,4,4,3,3,1,1,groups=2");
}

TEST(TaskListTest, ErrorsNameTheLine) {
  const auto refused = [](std::string_view text) {
    const auto tasks = ParseTaskList(text, "net.txt", "");
    EXPECT_FALSE(tasks.ok()) << text;
    return std::string(Message(tasks.status()));
  };
  EXPECT_THAT(refused("\nmatmul 8,8,8\n"),
              HasSubstr("net.txt:2: found 'matmul', expected a weight"));
  EXPECT_THAT(refused("-1 matmul 8,8,8"), HasSubstr("found '-1'"));
  EXPECT_THAT(refused("nan matmul 8,8,8"), HasSubstr("found 'nan'"));
  EXPECT_THAT(refused("1"), HasSubstr("found a weight alone"));
  EXPECT_THAT(refused("1 matmull 8,8,8"), HasSubstr("net.txt:1:"));
  EXPECT_THAT(refused("1 matmul 8,8,8 relu more"), HasSubstr("found 'more'"));
  EXPECT_THAT(refused("1 matmul 8,8,8 variants=fast"),
              HasSubstr("found 'variants=fast', expected direct, winograd or all"));
  EXPECT_THAT(refused("# nothing\n"), HasSubstr("lists no task"));
}

}  // namespace
}  // namespace kiln::client
