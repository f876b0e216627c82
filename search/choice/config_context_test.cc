#include "search/choice/config_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "store/memory_store.h"

namespace kiln::search {
namespace {

constexpr char kArgs[] = "[[\"TENSOR\", [1, 768], \"float32\"]]";

store::AutotvmRecord Config(int64_t index, const std::string& target, double cost_s) {
  static double timestamp_s = 1;
  return {.target = target,
          .task = "dense.cuda",
          .args = kArgs,
          .kwargs = "{}",
          .config_index = index,
          .entities = "[]",
          .costs_s = {cost_s},
          .timestamp_s = timestamp_s++};
}

class ConfigContextTest : public testing::Test {
 protected:
  void Add(const store::AutotvmRecord& record) {
    ASSERT_OK(store_->ImportAutotvmRecords({&record, 1}).status());
  }
  // Returns the index of the configuration, or -1 if there is none.
  static int64_t Ask(ConfigContext& context, const std::string& target,
                     const std::string& args = kArgs) {
    const auto found = context.Query({.target = target, .task = "dense.cuda", .args = args});
    EXPECT_OK(found.status());
    return found->has_value() ? (*found)->config_index : -1;
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
};

TEST_F(ConfigContextTest, TheBestRecordOfTheModelThenOfEachKey) {
  ConfigHistory history(*store_);
  EXPECT_EQ(Ask(history, "cuda"), -1);
  Add(Config(1, "cuda -keys=cuda,gpu -model=t4", 2e-6));
  Add(Config(2, "cuda -keys=cuda,gpu -model=v100", 1e-6));
  Add(Config(3, "cuda -keys=cuda,gpu -model=v100", 3e-6));
  store::AutotvmRecord failed = Config(4, "cuda -model=t4", 1e-9);
  failed.error = 1;
  Add(failed);
  EXPECT_EQ(Ask(history, "cuda -model=t4"), 1);
  EXPECT_EQ(Ask(history, "cuda -model=v100"), 2);
  EXPECT_EQ(Ask(history, "cuda -model=h200"), 2) << "the best one of any with the key cuda";
  EXPECT_EQ(Ask(history, "cuda -model=unknown"), 2);
  EXPECT_EQ(Ask(history, "llvm"), -1);
  EXPECT_EQ(Ask(history, "cuda", "[]"), -1) << "of other arguments";
}

TEST_F(ConfigContextTest, UpdatesComeFirstAndInnerOnesBeforeOuterOnes) {
  Add(Config(1, "cuda -model=t4", 1e-6));
  const auto outer = std::make_shared<ConfigHistory>(*store_);
  FixedConfigs inner(outer);
  EXPECT_EQ(Ask(inner, "cuda -model=t4"), 1);
  inner.Update(Config(7, "cuda -model=t4", 1));
  EXPECT_EQ(Ask(inner, "cuda -model=t4"), 7);
  EXPECT_EQ(Ask(inner, "cuda"), 7);
  EXPECT_EQ(Ask(*outer, "cuda -model=t4"), 1);
  outer->Update(Config(8, "cuda -model=t4", 1));
  EXPECT_EQ(Ask(*outer, "cuda -model=t4"), 8);
  EXPECT_EQ(Ask(inner, "cuda -model=t4"), 7);
}

}  // namespace
}  // namespace kiln::search
