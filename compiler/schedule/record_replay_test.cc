// The recorded GPU schedules of a network's layers, replayed: every one applies to its computation,
// and what is known of its loops fits together.
#include <gtest/gtest.h>

#include <fstream>

#include "base/status_testing.h"
#include "compiler/schedule/iter_map.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/test_dags.h"

namespace kiln::schedule {
namespace {

std::vector<StepPtr> RecordedSteps(int line) {
  std::ifstream file("compiler/schedule/testdata/resnet18_cuda_steps.txt");
  std::string text;
  for (int i = 0; i < line; ++i) std::getline(file, text);
  StatusOr<std::vector<StepPtr>> steps = ParseSteps(text);
  KILN_CHECK(steps.ok(), "{}", Message(steps.status()));
  return *std::move(steps);
}

struct Layer {
  int line;
  dag::DagPtr dag;
};

std::vector<Layer> Layers() {
  return {{2, Conv2d({56, 64, 64, 1, 1, 0}, false)},
          {3, Conv2d({56, 64, 128, 3, 2, 1}, true)},
          {4, Dense(1, 1000, 512)},
          {5, AvgPool(7, 512)},
          {7, Conv2d({14, 256, 512, 1, 2, 0}, false)},
          {11, Conv2d({224, 3, 64, 7, 2, 3}, true)},
          {12, Conv2d({56, 64, 128, 1, 2, 0}, false)},
          {13, MaxPool(112, 64)},
          {15, Conv2d({14, 256, 512, 3, 2, 1}, true)},
          {16, Softmax(1, 1000)},
          {19, Conv2d({28, 128, 256, 1, 2, 0}, false)},
          {21, Conv2d({28, 128, 256, 3, 2, 1}, true)}};
}

int64_t LoopProduct(const Stage& stage, const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (const LoopIter& loop : stage.loops) product *= extents[loop.iter];
  return product;
}

TEST(RecordReplay, LoopsCoverTheirAxes) {
  for (const Layer& layer : Layers()) {
    SCOPED_TRACE(layer.line);
    ASSERT_OK_AND_ASSIGN(const State state, Replay(layer.dag, RecordedSteps(layer.line)));
    EXPECT_TRUE(state.concrete());
    for (int i = 0; i < state.num_stages(); ++i) {
      const Stage& stage = state.stage(i);
      if (stage.is_placeholder()) continue;
      ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> extents, IterExtents(stage));
      int64_t points = 1;
      for (int axis = 0; axis < stage.num_axes(); ++axis) points *= extents[axis];
      EXPECT_GE(LoopProduct(stage, extents), points) << stage.op->name();
      // Tiles of root stages are exact divisors in these records, but for the last block of
      // threads.
      if (state.attach(i).kind == Attach::kRoot) {
        EXPECT_LT(LoopProduct(stage, extents), points + 1024) << stage.op->name();
      }
      for (size_t iter = 0; iter < extents.size(); ++iter) {
        if (stage.iters[iter].extent == kUnknownExtent) continue;
        EXPECT_EQ(stage.iters[iter].extent, extents[iter]) << IterName(stage, iter);
      }
    }
  }
}

// The first layer, 7x7 with stride 2, in full.
TEST(RecordReplay, FirstConvolution) {
  ASSERT_OK_AND_ASSIGN(const State state,
                       Replay(Conv2d({224, 3, 64, 7, 2, 3}, true), RecordedSteps(11)));
  EXPECT_EQ(PrintLoops(state, false), R"(Placeholder: data, weight, bias
blockIdx.x n.0@h.0@w.0@c.0@ (0,224)
  vthread n.1@h.1@w.1@c.1@ (0,7)
    threadIdx.x n.2@h.2@w.2@c.2@ (0,32)
      conv auto_unroll: 1024
      for n.0 (None)
        for h.0 (None)
          for w.0 (None)
            for c.0 (None)
              for n.1 (None)
                for h.1 (None)
                  for w.1 (None)
                    for c.1 (None)
                      for n.2 (None)
                        for h.2 (None)
                          for w.2 (None)
                            for c.2 (None)
                              for rh.0 (None)
                                for rw.0 (None)
                                  for rc.0 (None)
                                    for ax0@ax1@ax2@ax3@.0.0 (None)
                                      threadIdx.x ax0@ax1@ax2@ax3@.0.1 (0,32)
                                        vectorize ax0@ax1@ax2@ax3@.1 (0,1)
                                          pad.shared = ...
                                    for ax0@ax1@ax2@ax3@.0.0 (None)
                                      threadIdx.x ax0@ax1@ax2@ax3@.0.1 (0,32)
                                        vectorize ax0@ax1@ax2@ax3@.1 (0,1)
                                          weight.shared = ...
                                    for rh.1 (None)
                                      for rw.1 (None)
                                        for rc.1 (None)
                                          for n.3 (None)
                                            for h.3 (None)
                                              for w.3 (None)
                                                for c.3 (None)
                                                  for rh.2 (None)
                                                    for rw.2 (None)
                                                      for rc.2 (None)
                                                        for n.4 (None)
                                                          for h.4 (None)
                                                            for w.4 (None)
                                                              for c.4 (None)
                                                                conv = ...
      for n.3 (0,1)
        for h.3 (0,2)
          for w.3 (0,1)
            for c.3 (0,8)
              relu = ...
)");
}

}  // namespace
}  // namespace kiln::schedule
