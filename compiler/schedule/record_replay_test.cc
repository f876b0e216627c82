// Replays the recorded GPU schedules of a network's layers. Each one applies to its computation,
// and the extents of its loops are consistent.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/schedule/iter_map.h"
#include "compiler/schedule/recorded_layers_testing.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

int64_t LoopProduct(const Stage& stage, const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (const LoopIter& loop : stage.loops) product *= extents[loop.iter];
  return product;
}

TEST(RecordReplay, LoopsCoverTheirAxes) {
  for (const RecordedLayer& layer : RecordedLayers()) {
    SCOPED_TRACE(layer.line);
    const State state = layer.Replayed();
    EXPECT_TRUE(state.concrete());
    for (int i = 0; i < state.num_stages(); ++i) {
      const Stage& stage = state.stage(i);
      if (stage.is_placeholder()) continue;
      ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> extents, IterExtents(stage));
      int64_t points = 1;
      for (int axis = 0; axis < stage.num_axes(); ++axis) points *= extents[axis];
      EXPECT_GE(LoopProduct(stage, extents), points) << stage.op->name();
      // Tiles of root stages are exact divisors in these records, except for the last block of
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
  EXPECT_EQ(PrintLoops(RecordedLayers()[10].Replayed(), false), R"(Placeholder: p0, p1, p2
blockIdx.x ax0.0@ax1.0@ax2.0@ax3.0@ (0,224)
  vthread ax0.1@ax1.1@ax2.1@ax3.1@ (0,7)
    threadIdx.x ax0.2@ax1.2@ax2.2@ax3.2@ (0,32)
      conv2d_nhwc auto_unroll: 1024
      for nn.0 (None)
        for yy.0 (None)
          for xx.0 (None)
            for ff.0 (None)
              for nn.1 (None)
                for yy.1 (None)
                  for xx.1 (None)
                    for ff.1 (None)
                      for nn.2 (None)
                        for yy.2 (None)
                          for xx.2 (None)
                            for ff.2 (None)
                              for ry.0 (None)
                                for rx.0 (None)
                                  for rc.0 (None)
                                    for ax0@ax1@ax2@ax3@.0.0 (None)
                                      threadIdx.x ax0@ax1@ax2@ax3@.0.1 (0,32)
                                        vectorize ax0@ax1@ax2@ax3@.1 (0,1)
                                          pad_temp.shared = ...
                                    for ax0@ax1@ax2@ax3@.0.0 (None)
                                      threadIdx.x ax0@ax1@ax2@ax3@.0.1 (0,32)
                                        vectorize ax0@ax1@ax2@ax3@.1 (0,1)
                                          p1.shared = ...
                                    for ry.1 (None)
                                      for rx.1 (None)
                                        for rc.1 (None)
                                          for nn.3 (None)
                                            for yy.3 (None)
                                              for xx.3 (None)
                                                for ff.3 (None)
                                                  for ry.2 (None)
                                                    for rx.2 (None)
                                                      for rc.2 (None)
                                                        for nn.4 (None)
                                                          for yy.4 (None)
                                                            for xx.4 (None)
                                                              for ff.4 (None)
                                                                conv2d_nhwc = ...
      for ax0.3 (0,1)
        for ax1.3 (0,2)
          for ax2.3 (0,1)
            for ax3.3 (0,8)
              T_relu = ...
)");
}

}  // namespace
}  // namespace kiln::schedule
