// A CUDA driver without a GPU, for tests. Device memory is host memory, work is done when it is
// queued, and kernels are functions of the host. A graph runs its kernels in the worst order that
// the streams and events of its recording allow: of the kernels that may run, the last recorded one
// runs first.
//
// There is one driver per process, like the real one. Tests call Reset before each test. Not
// thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"

namespace kiln::runtime {

struct FakeLaunch {
  std::string kernel;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
};

struct FakeCuda {
  struct Gpu {
    std::string name = "Fake GPU";
    // All bytes of the UUID have this value.
    unsigned char uuid = 0x11;
    int major = 9;
    // Other attributes have usual values.
    std::map<int, int> attributes;
  };
  struct Kernel {
    // Any result but 0 is a sticky error.
    std::function<CuResult(const FakeLaunch&)> run;
    // Number of parameters of 8 bytes.
    int parameters = 0;
    // Number of tensor maps behind the parameters.
    int tensor_maps = 0;
    int max_threads = 1024;
    int static_shared_bytes = 0;
    // The amount that was allowed last.
    int dynamic_shared_bytes = 0;
    // Cluster width that the kernel was compiled for.
    int cluster_width = 0;
  };

  std::vector<Gpu> gpus = {Gpu()};
  // The kernels of every module.
  std::map<std::string, Kernel> kernels;
  size_t free_bytes = size_t{1} << 30;
  CuResult load_result = 0;
  // Result of copies within GPU memory outside of recordings.
  CuResult device_copy_result = 0;
  // Active clusters of any kernel that was compiled for clusters.
  int active_clusters = 66;
  // Active clusters by the blocks of a cluster that a launch asks for.
  std::map<unsigned, int> active_clusters_of = {{2, 66}, {4, 30}, {8, 15}, {16, 7}};
  // Contexts that are retained now.
  int contexts = 0;
  // Ordinal of the GPU that all device memory is said to be on.
  int memory_ordinal = 0;

  // State and counts of the calls so far.
  CuResult sticky = 0;
  int graph_launches = 0;
  // Graphs instantiated so far.
  int graphs = 0;
  // Streams and events that exist now.
  int streams = 0;
  int events = 0;
  int pushed_contexts = 0;
  // Modules that are loaded now, and those that were ever loaded.
  int modules = 0;
  int module_loads = 0;
  // Waits for the stream.
  int waits = 0;
  // Waits of the whole context.
  int context_waits = 0;
  // Blocks of GPU memory that were ever allocated.
  int allocations = 0;
  // Events that streams waited for outside of recordings, and those that were recorded there.
  int event_waits = 0;
  int event_records = 0;
  // Launches of kernels that may start before the kernels before them have ended.
  int early_launches = 0;
  // Blocks of pinned memory that exist now.
  int host_blocks = 0;
  // Tensor maps encoded so far.
  int encoded_maps = 0;
  // Access policy windows of the launches that had one.
  std::vector<CuAccessPolicyWindow> windows;
  // Times between events that are still to come; afterwards 2 for ever.
  std::deque<float> elapsed_ms;
  // If set, the time between events is what kernels have added to now_ms between them.
  bool keeps_time = false;
  double now_ms = 0;
  std::map<CuEvent, double> recorded_ms;
  std::vector<std::string> launched;
  // Blocks and their bytes.
  std::map<CuPointer, size_t> memory;

  static FakeCuda& Get();
  static const CudaDriver& Driver();
  // Makes the driver as new.
  void Reset();
};

template <typename T>
T FakeParameter(const FakeLaunch& launch, int index) {
  return *static_cast<T*>(launch.parameters[index]);
}

}  // namespace kiln::runtime
