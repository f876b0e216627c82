// Checks that keys that TVM 0.19 makes of operators of both libraries are among ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using testing::Contains;
using testing::ElementsAre;

struct TvmKey {
  const char *op, *args, *epilogue, *key;
};

// Results of ComputeDAG(...).workload_key() for topi's operators, with inputs called p0, p1, ...
constexpr TvmKey kKeys[] = {
    {"dense", "64,48,32", "",
     R"(["a601c6375393779317910dc2f89a7efc", [64, 32], [48, 32], [64, 48]])"},
    {"dense", "64,48,32", "relu",
     R"(["d8c8ad4442a34bcf9fd119d9d6b348a4", [64, 32], [48, 32], [64, 48]])"},
    {"matmul", "64,48,32", "",
     R"(["4498039d22bebcc401f6980d4f42290e", [64, 32], [32, 48], [64, 48]])"},
    {"matmul", "64,48,32", "",
     R"(["88c8a70c7ecf960a22d6a956f87198a6", [64, 32], [32, 48], [64, 48]])"},
    {"matmul", "127,96,80", "relu",
     R"(["ba6762627a84b815148aa6c3bca8aec1", [127, 80], [80, 96], [127, 96]])"},
    {"batch_matmul", "4,64,48,32,transpose_b=1", "",
     R"(["921639a76d091edf9293df891b003331", [4, 64, 32], [4, 48, 32], [4, 64, 48]])"},
    {"batch_matmul", "4,64,48,32", "",
     R"(["97d6699a083ccfb8655170ee1eb94e98", [4, 64, 32], [4, 32, 48], [4, 64, 48]])"},
    {"avg_pool2d_nhwc", "1,14,14,32,2,2,2,0", "",
     R"(["3788955ee5407575782aa3f815485362", [1, 14, 14, 32], [1, 7, 7, 32]])"},
    {"avg_pool2d_nhwc", "1,14,14,32,3,3,2,1,count_include_pad=1", "",
     R"(["398701c1efe5fd1e0274100c1503fbca", [1, 14, 14, 32], [1, 7, 7, 32]])"},
    {"avg_pool2d_nhwc", "2,15,13,8,3,2,1,1,count_include_pad=1", "",
     R"(["9d043dea4d33d407e3cecdde38dcf16f", [2, 15, 13, 8], [2, 15, 14, 8]])"},
    {"avg_pool2d_nhwc", "1,8,8,4,1,1,1,0", "",
     R"(["54015db555cae1451de772642fe12bc4", [1, 8, 8, 4], [1, 8, 8, 4]])"},
    {"avg_pool2d_nhwc", "1,9,9,4,3,3,1,0", "",
     R"(["9617cad0943feda200ed3c359ea91ee4", [1, 9, 9, 4], [1, 7, 7, 4]])"},
    {"avg_pool2d_nhwc", "1,14,14,32,2,2,2,0", "",
     R"(["866fc20a3c70d1e283a68cacf0a5de00", [1, 14, 14, 32], [1, 7, 7, 32]])"},
    {"avg_pool2d_nhwc", "1,14,14,32,3,3,2,1", "",
     R"(["86c22555298ce822954658c5fcc053dd", [1, 14, 14, 32], [1, 7, 7, 32]])"},
    {"avg_pool2d_nhwc", "2,15,13,8,3,2,1,1", "",
     R"(["95ceca4ea5266de9718b8008bc30547a", [2, 15, 13, 8], [2, 15, 14, 8]])"},
    {"avg_pool2d_nhwc", "1,8,8,4,1,1,1,0", "",
     R"(["d283140f13c3a8193449502ab816c03e", [1, 8, 8, 4], [1, 8, 8, 4]])"},
    {"avg_pool2d_nhwc", "1,9,9,4,3,3,1,0", "",
     R"(["e0c0a5b65ea0f7f31c8db1de61545db4", [1, 9, 9, 4], [1, 7, 7, 4]])"},
    {"avg_pool2d_nchw", "1,14,14,32,2,2,2,0", "",
     R"(["7bfb0a735f3b6cf35e74924a547aa666", [1, 32, 14, 14], [1, 32, 7, 7]])"},
    {"avg_pool2d_nchw", "1,14,14,32,3,3,2,1,count_include_pad=1", "",
     R"(["75be98c69d5c3f46e046ce20e85b8b1f", [1, 32, 14, 14], [1, 32, 7, 7]])"},
    {"avg_pool2d_nchw", "2,15,13,8,3,2,1,1,count_include_pad=1", "",
     R"(["5aa9b0ffd18ee12e2d818a537cb1c2cc", [2, 8, 15, 13], [2, 8, 15, 14]])"},
    {"avg_pool2d_nchw", "1,8,8,4,1,1,1,0", "",
     R"(["beaea8ed25933141ca164e161f5440ed", [1, 4, 8, 8], [1, 4, 8, 8]])"},
    {"avg_pool2d_nchw", "1,9,9,4,3,3,1,0", "",
     R"(["3efc56ad4c27da124bb4a295d5e4428d", [1, 4, 9, 9], [1, 4, 7, 7]])"},
    {"avg_pool2d_nchw", "1,14,14,32,2,2,2,0", "",
     R"(["25952bda531276552d527aa0170e7f15", [1, 32, 14, 14], [1, 32, 7, 7]])"},
    {"avg_pool2d_nchw", "1,14,14,32,3,3,2,1", "",
     R"(["8267a9566455a6f426d876b5861afa15", [1, 32, 14, 14], [1, 32, 7, 7]])"},
    {"avg_pool2d_nchw", "2,15,13,8,3,2,1,1", "",
     R"(["84365eb61451b113c09b299ded45c033", [2, 8, 15, 13], [2, 8, 15, 14]])"},
    {"avg_pool2d_nchw", "1,8,8,4,1,1,1,0", "",
     R"(["1eb5d5bcfc1d47032e9f6837f8130bbf", [1, 4, 8, 8], [1, 4, 8, 8]])"},
    {"avg_pool2d_nchw", "1,9,9,4,3,3,1,0", "",
     R"(["f83d0f9b90063490cc6bab08b4bfe665", [1, 4, 9, 9], [1, 4, 7, 7]])"},
    {"max_pool2d_nhwc", "1,14,14,32,3,3,2,1", "",
     R"(["c219de5fa5fe694343f2826ebe8e47ce", [1, 14, 14, 32], [1, 7, 7, 32]])"},
    {"global_avg_pool2d_nhwc", "1,7,7,32", "",
     R"(["8c53ca2904398da2889aa7508082d7bb", [1, 7, 7, 32], [1, 1, 1, 32]])"},
    {"softmax", "64,128", "", R"(["7d79c516e212fe1d73f5dbb90eaca2cf", [64, 128], [64, 128]])"},
    {"layer_norm", "64,128,one_pass=1", "",
     R"(["ab597bd2f964282fcc235051ab545e49", [64, 128], [128], [128], [64, 128]])"},
    {"layer_norm", "2,64,128,one_pass=1", "",
     R"(["ecb2652c89337ba302085fb94ddd1934", [2, 64, 128], [128], [128], [2, 64, 128]])"},
    {"layer_norm", "2,64,128,axis=1,one_pass=1", "",
     R"(["0fffb520ba8aee4b6c546df62a45acd0", [2, 64, 128], [64, 128], [64, 128], [2, 64, 128]])"},
    {"sum", "64,128,axis=1", "", R"(["3753567f482547cb84559ce0d484f94d", [64, 128], [64]])"},
    {"max", "64,128,axis=1", "", R"(["e8fb98cc37a0514557cf074e239c683a", [64, 128], [64]])"},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "",
     R"(["dcee80d024ce0e9a230b3f8f573cd1fc", [1, 14, 14, 32], [3, 3, 32, 16], [1, 14, 14, 16]])"},
    {"conv2d_nhwc", "1,14,14,16,32,3,3,1,1", "bias,relu",
     R"(["fc7ed8186de1666754c2a0bb13528688", [1, 14, 14, 32], [3, 3, 32, 16], [1, 1, 1, 16], [1, 14, 14, 16]])"},
    {"conv2d_nhwc", "1,14,14,16,32,1,1,1,0", "relu",
     R"(["416e1794f9fab2d356ded017d56c1baf", [1, 14, 14, 32], [1, 1, 32, 16], [1, 14, 14, 16]])"},
    {"conv2d_nchw", "1,14,14,16,32,3,3,1,1", "",
     R"(["d4832d4da8983a02ecb0050dbad86672", [1, 32, 14, 14], [16, 32, 3, 3], [1, 16, 14, 14]])"},
    {"depthwise_conv2d_nhwc", "1,14,14,32,3,3,1,1", "",
     R"(["c0b62ed5bc61ffe908541dad2c98e177", [1, 14, 14, 32], [3, 3, 32, 1], [1, 14, 14, 32]])"},
    {"depthwise_conv2d_nchw", "1,14,14,32,3,3,1,1", "",
     R"(["1b4b44c3ab37d62a389adb713b6ebe2c", [1, 32, 14, 14], [32, 1, 3, 3], [1, 32, 14, 14]])"},
};

TEST(TvmKeys, AreAmongOurs) {
  for (const TvmKey& tvm : kKeys) {
    ASSERT_OK_AND_ASSIGN(const DagPtr dag,
                         BuildOp(tvm.op, tvm.args, {.epilogue = SplitEpilogue(tvm.epilogue)}));
    EXPECT_THAT(WorkloadKeys(*dag), Contains(tvm.key))
        << tvm.op << " " << tvm.args << " " << tvm.epilogue;
  }
}

TEST(TvmKeys, OursComesFirstAndEachOnce) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dense, BuildOp("dense", "1,1000,512"));
  const std::vector<std::string> keys = WorkloadKeys(*dense);
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], WorkloadKey(*dense));
  ASSERT_OK_AND_ASSIGN(const DagPtr softmax, BuildOp("softmax", "8,8"));
  EXPECT_THAT(WorkloadKeys(*softmax), ElementsAre(WorkloadKey(*softmax)));
  ASSERT_OK_AND_ASSIGN(const DagPtr product, BuildOp("matmul", "8,8,8", {.epilogue = {"relu"}}));
  EXPECT_EQ(WorkloadKeys(*product).size(), 6u) << "three names of the product, two of ReLU";
}

}  // namespace
}  // namespace kiln::dag
