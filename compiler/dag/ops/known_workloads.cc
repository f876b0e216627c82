#include "compiler/dag/ops/known_workloads.h"

#include <set>

#include "compiler/dag/ops/registry.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

constexpr KnownWorkload kResnet18[] = {
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,64,64,1,1,1,0"},
    {"conv2d_nhwc", "1,56,56,128,64,3,3,2,1", "bias,relu"},
    {"dense", "1,1000,512", "bias"},
    {"global_avg_pool2d_nhwc", "1,7,7,512"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "residual"},
    {"conv2d_nhwc", "1,14,14,512,256,1,1,2,0"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "residual"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "residual,bias,relu"},
    {"conv2d_nhwc", "1,224,224,64,3,7,7,2,3", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,128,64,1,1,2,0"},
    {"max_pool2d_nhwc", "1,112,112,64,3,3,2,1", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "bias,relu"},
    {"conv2d_nhwc", "1,14,14,512,256,3,3,2,1", "bias,relu"},
    {"softmax", "1,1000"},
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "residual,bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "residual"},
    {"conv2d_nhwc", "1,28,28,256,128,1,1,2,0"},
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "residual"},
    {"conv2d_nhwc", "1,28,28,256,128,3,3,2,1", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "residual,bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "residual,scale,bias,relu"},
};

constexpr KnownWorkload kConformance[] = {
    {"conv2d_nhwc", "1,224,224,64,3,7,7,2,3", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,64,64,1,1,1,0", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,128,64,3,3,2,1", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,128,64,1,1,2,0", "bias,relu"},
    {"conv2d_nhwc", "1,28,28,128,128,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,28,28,256,128,3,3,2,1", "bias,relu"},
    {"conv2d_nhwc", "1,28,28,256,128,1,1,2,0", "bias,relu"},
    {"conv2d_nhwc", "1,14,14,256,256,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,14,14,512,256,3,3,2,1", "bias,relu"},
    {"conv2d_nhwc", "1,14,14,512,256,1,1,2,0", "bias,relu"},
    {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu"},
    {"matmul", "1024,1024,1024"},
    {"softmax", "512,1000"},
    {"sum", "512,4096,axis=1"},
    // Odd shapes: primes, batch 3, sizes that no tile divides.
    {"conv2d_nhwc", "3,7,13,17,5,3,3,1,1", "bias,relu"},
    {"conv2d_nchw", "3,17,11,23,7,3,3,2,1"},
    {"matmul", "127,255,63", "relu"},
    {"dense", "1,1000,512", "bias"},
    {"softmax", "7,1009"},
    {"sum", "13,31,97,axis=0,axis=2"},
    {"depthwise_conv2d_nhwc", "1,31,29,37,3,3,1,1"},
    // Other types.
    {"conv2d_nhwc", "1,14,14,64,64,3,3,1,1", "bias,relu", "bfloat16"},
    {"dense", "64,256,512", "bias,relu", "float16"},
    {"dense", "64,256,512", "", "int8"},
};

// Sums of products whose rows, columns and depths divide into tiles, and others that do not. All
// layouts of operands; strides, dilations, groups, one to three dimensions of an image.
constexpr KnownWorkload kMatrix[] = {
    {"matmul", "256,256,256"},
    {"matmul", "49,200,147", "relu"},
    {"matmul", "333,77,1000"},
    {"dense", "16,1000,512", "bias"},
    {"dense", "127,130,131"},
    {"batch_matmul", "3,50,60,70"},
    {"batch_matmul", "2,64,72,80,transpose_a=1"},
    {"batch_matmul", "4,128,128,64,transpose_b=1"},
    {"conv2d_nhwc", "1,14,14,64,64,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "2,15,17,48,33,3,3,2,1", "relu"},
    {"conv2d_nhwc", "1,28,28,96,64,1,1,2,0"},
    {"conv2d_nhwc", "1,12,12,64,32,3,3,1,2,2"},
    {"conv2d_nhwc", "1,14,14,64,64,3,3,1,1,groups=4"},
    {"conv2d_nchw", "1,28,28,128,96,3,3,1,1", "relu"},
    {"conv2d_nchw", "2,27,29,256,128,3,3,2,1,groups=2", "bias"},
    {"conv1d_nwc", "1,100,64,48,5,2,2"},
    {"conv3d_ndhwc", "1,6,10,10,32,16,3,3,3,1,1"},
    {"conv2d_transpose_nhwc", "1,8,8,32,64,4,4,2,1"},
};

// The same for 16-bit types. Sums are rounded before the operators that follow, as in networks,
// whose operators all have results of that type.
constexpr KnownWorkload kRounded[] = {
    {"dense", "128,192,512", "cast,bias,gelu"},
    {"conv2d_nhwc", "1,14,14,64,128,3,3,1,1", "cast,bias,relu"},
};

}  // namespace

StatusOr<DagPtr> KnownWorkload::Build() const {
  OpOptions options;
  KILN_ASSIGN_OR_RETURN(options.dtype, ir::ParseType(dtype));
  options.epilogue = SplitEpilogue(epilogue);
  return BuildOp(op, args, options);
}

std::string KnownWorkload::Description() const {
  std::string text = fmt::format("{} {}", op, args);
  if (std::string_view(dtype) != "float32") text += fmt::format(" {}", dtype);
  for (const std::string& name : SplitEpilogue(epilogue)) text += " + " + name;
  return text;
}

std::span<const KnownWorkload> Resnet18Tasks() { return kResnet18; }
std::span<const KnownWorkload> ConformanceWorkloads() { return kConformance; }

std::vector<KnownWorkload> MatrixWorkloads(const char* dtype) {
  std::vector<KnownWorkload> workloads(std::begin(kMatrix), std::end(kMatrix));
  if (std::string_view(dtype).ends_with("float16"))
    workloads.insert(workloads.end(), std::begin(kRounded), std::end(kRounded));
  for (KnownWorkload& workload : workloads) workload.dtype = dtype;
  return workloads;
}

const std::vector<KnownComputation>& KnownComputations() {
  static const auto* computations = [] {
    auto* all = new std::vector<KnownComputation>;
    std::set<std::string> ids;
    for (const auto& list : {Resnet18Tasks(), ConformanceWorkloads()}) {
      for (const KnownWorkload& workload : list) {
        const auto dag = workload.Build();
        KILN_CHECK(dag.ok(), "{}: {}", workload.Description(), Message(dag.status()));
        for (const DagPtr& form : {*dag, PackInputs(*dag, [](int) { return true; })}) {
          const std::string id = WorkloadId(*form);
          if (!ids.insert(id).second) continue;
          for (const std::string& key : WorkloadKeys(*form))
            all->push_back({&workload, id, key, PrintDag(*form), form->flop_count()});
        }
      }
    }
    return all;
  }();
  return *computations;
}

std::vector<const KnownComputation*> KnownByKey(std::string_view workload_key) {
  std::vector<const KnownComputation*> found;
  for (const KnownComputation& computation : KnownComputations()) {
    if (computation.key == workload_key) found.push_back(&computation);
  }
  return found;
}

}  // namespace kiln::dag
