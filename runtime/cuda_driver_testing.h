// A CUDA driver without a GPU, for tests: device memory is host memory, work is done when it is
// queued, and kernels are functions of the host. A graph runs its kernels in the worst order that
// the streams and events of its recording allow: of those that may run the last recorded first.
//
// One per process, as the real one; Reset before each test. Not thread-safe.
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
    unsigned char uuid = 0x11;  // all bytes of it
    int major = 9;
    std::map<int, int> attributes;  // others have usual values
  };
  struct Kernel {
    std::function<CuResult(const FakeLaunch&)> run;  // not 0: a sticky error
    int parameters = 0;                              // of 8 bytes
    int tensor_maps = 0;                             // behind them
    int max_threads = 1024;
    int static_shared_bytes = 0;
    int dynamic_shared_bytes = 0;  // as allowed last
    int cluster_width = 0;         // it was compiled for
  };

  std::vector<Gpu> gpus = {Gpu()};
  std::map<std::string, Kernel> kernels;  // of every module
  size_t free_bytes = size_t{1} << 30;
  CuResult load_result = 0;
  int active_clusters = 66;  // of any kernel that was compiled for clusters
  // By blocks of a cluster that a launch asks for.
  std::map<unsigned, int> active_clusters_of = {{2, 66}, {4, 30}, {8, 15}, {16, 7}};
  int contexts = 0;        // retained now
  int memory_ordinal = 0;  // of the GPU that all device memory is said to be on

  // What has happened.
  CuResult sticky = 0;
  int graph_launches = 0;
  int graphs = 0;   // instantiated so far
  int streams = 0;  // now
  int events = 0;   // now
  int pushed_contexts = 0;
  int modules = 0;         // loaded now
  int waits = 0;           // for the stream
  int early_launches = 0;  // of kernels that may start before those before them have ended
  int host_blocks = 0;     // of pinned memory, now
  std::vector<CuAccessPolicyWindow> windows;  // of launches that had one
  std::deque<float> elapsed_ms;               // between events, to come; then 2 for ever
  std::vector<std::string> launched;
  std::map<CuPointer, size_t> memory;  // blocks and their bytes

  static FakeCuda& Get();
  static const CudaDriver& Driver();
  void Reset();  // as new
};

template <typename T>
T FakeParameter(const FakeLaunch& launch, int index) {
  return *static_cast<T*>(launch.parameters[index]);
}

}  // namespace kiln::runtime
