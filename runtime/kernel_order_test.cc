#include "runtime/kernel_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/rng.h"

namespace kiln::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Arguments of kernels over arena buffers of 64 bytes; "+3" writes buffer 3.
struct Arg {
  int32_t buffer;
  bool written = false;
};
Network Kernels(int buffers, const std::vector<std::vector<Arg>>& kernels) {
  Network network;
  for (int i = 0; i < buffers; ++i) {
    network.buffers.push_back({.place = Place::kArena, .bytes = 64, .offset = 64 * i});
  }
  for (const std::vector<Arg>& args : kernels) {
    NetworkKernel& kernel = network.kernels.emplace_back();
    for (const Arg& arg : args) kernel.args.push_back({arg.buffer, arg.written});
  }
  return network;
}

TEST(KernelOrderTest, AChainIsOneStream) {
  const Network network = Kernels(4, {{{0, true}}, {{0}, {1, true}}, {{1}, {2, true}}});
  EXPECT_THAT(DependenciesOf(network), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
  const StreamPlan plan = PlanStreams(network, 4);
  EXPECT_EQ(plan.streams, 1);
  EXPECT_THAT(plan.joins, IsEmpty());
}

TEST(KernelOrderTest, ADiamondIsTwo) {
  const Network network =
      Kernels(4, {{{0, true}}, {{0}, {1, true}}, {{0}, {2, true}}, {{1}, {2}, {3, true}}});
  EXPECT_THAT(DependenciesOf(network),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0), ElementsAre(1, 2)));
  const StreamPlan plan = PlanStreams(network, 4);
  EXPECT_EQ(plan.streams, 2);
  EXPECT_EQ(plan.steps[1].stream, 0);
  EXPECT_EQ(plan.steps[2].stream, 1);
  EXPECT_THAT(plan.steps[2].waits, ElementsAre(0));
  EXPECT_EQ(plan.steps[3].stream, 1);
  EXPECT_THAT(plan.steps[3].waits, ElementsAre(1));
  EXPECT_THAT(plan.joins, ElementsAre(3));
  EXPECT_EQ(PlanStreams(network, 1).streams, 1);
}

TEST(KernelOrderTest, MemoryThatIsUsedAgainOrders) {
  // Kernel 2 writes a buffer that kernel 1 still reads, and kernel 3 writes it once more.
  Network network = Kernels(3, {{{0, true}}, {{0}, {1, true}}, {{0, true}}, {{0, true}}});
  EXPECT_THAT(DependenciesOf(network),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  // Buffer 2 has the same bytes under another number.
  network.buffers[2].offset = 0;
  network.kernels[3].args = {{2, true}};
  EXPECT_THAT(DependenciesOf(network)[3], ElementsAre(2));
}

TEST(KernelOrderTest, ViewsAreBytesOfWhatTheyLieIn) {
  Network network = Kernels(1, {{{1, true}}, {{2, true}}, {{0}, {3, true}}});
  network.buffers[0].bytes = 128;
  network.buffers.push_back({.place = Place::kView, .bytes = 64, .offset = 0, .viewed = 0});
  network.buffers.push_back({.place = Place::kView, .bytes = 64, .offset = 64, .viewed = 0});
  network.buffers.push_back({.place = Place::kOutput, .bytes = 64});
  EXPECT_THAT(DependenciesOf(network), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1)));
}

// Tells whether the plan makes `b` wait for `a`, by streams and waits alone.
class Waits {
 public:
  explicit Waits(const StreamPlan& plan) {
    std::vector<int32_t> last(static_cast<size_t>(plan.streams), -1);
    for (const StreamPlan::Step& step : plan.steps) {
      std::vector<bool> behind(plan.steps.size());
      std::vector<int32_t> direct = step.waits;
      int32_t& before = last[static_cast<size_t>(step.stream)];
      if (before >= 0) direct.push_back(before);
      for (int32_t one : direct) {
        behind[static_cast<size_t>(one)] = true;
        for (size_t i = 0; i < behind.size(); ++i) {
          if (behind_[static_cast<size_t>(one)][i]) behind[i] = true;
        }
      }
      before = static_cast<int32_t>(behind_.size());
      behind_.push_back(std::move(behind));
    }
  }
  bool Has(size_t b, size_t a) const { return behind_[b][a]; }

 private:
  std::vector<std::vector<bool>> behind_;
};

TEST(KernelOrderTest, EveryConflictIsOrdered) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const auto buffers = static_cast<int>(UniformIn(rng, 2, 10));
    std::vector<std::vector<Arg>> kernels(static_cast<size_t>(UniformIn(rng, 1, 30)));
    for (auto& args : kernels) {
      for (int64_t i = UniformIn(rng, 1, 3); i > 0; --i) {
        args.push_back({static_cast<int32_t>(UniformInt(rng, buffers)), Chance(rng, 0.4)});
      }
    }
    Network network = Kernels(buffers, kernels);
    // Some buffers overlap half of the next one.
    for (NetworkBuffer& buffer : network.buffers) {
      if (Chance(rng, 0.3)) buffer.offset += 32;
    }
    const StreamPlan plan = PlanStreams(network, static_cast<int>(UniformIn(rng, 2, 4)));
    const Waits waits(plan);
    for (size_t b = 0; b < kernels.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        bool conflict = false;
        for (const Arg& one : kernels[a]) {
          for (const Arg& other : kernels[b]) {
            const int64_t distance = network.buffers[static_cast<size_t>(one.buffer)].offset -
                                     network.buffers[static_cast<size_t>(other.buffer)].offset;
            conflict |= (one.written || other.written) && std::abs(distance) < 64;
          }
        }
        ASSERT_TRUE(!conflict || waits.Has(b, a)) << a << " and " << b << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::runtime
