#include "client/worker_places.h"

#include <fmt/format.h>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

using Texts = std::vector<std::string>;

// The files of a machine, below a folder of the test.
class WorkerPlacesTest : public testing::Test {
 protected:
  void File(const std::string& path, const std::string& text) const {
    const std::string full = folder_.path() + path;
    ASSERT_OK(MakeDirs(full.substr(0, full.rfind('/'))));
    ASSERT_OK(WriteFile(full, text));
  }
  // Adds the GPU at bus `bus`, and returns its address.
  std::string Gpu(int bus, const std::string& near, int node) const {
    std::string address = fmt::format("0000:{:02x}:00.0", bus);
    const std::string device = "/sys/bus/pci/devices/" + address;
    if (!near.empty()) File(device + "/local_cpulist", near + "\n");
    File(device + "/numa_node", fmt::format("{}\n", node));
    return address;
  }
  // Cores `distance` apart are threads of one physical core.
  void Threads(int cores, int distance) const {
    for (int core = 0; core < cores; ++core) {
      File(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", core),
           fmt::format("{},{}\n", core % distance, core % distance + distance));
    }
  }
  // Returns the cores of each runner as a text, and those of the others as the last.
  Texts Place(const std::string& allowed, const Texts& gpus) const {
    const HostTopology host(*ParseCoreList(allowed), folder_.path());
    const WorkerPlaces places = PlaceWorkers(host, gpus);
    Texts texts;
    for (const auto& cores : places.runners) texts.push_back(CoreListText(cores));
    texts.push_back(CoreListText(places.others));
    return texts;
  }

  const TempDir folder_ = *TempDir::Make("kiln-places");
};

TEST_F(WorkerPlacesTest, HowManyCoresARunnerHas) {
  EXPECT_EQ(CoresOfRunner(16, 0), 0);
  EXPECT_EQ(CoresOfRunner(1, 1), 0);
  EXPECT_EQ(CoresOfRunner(2, 1), 1);
  EXPECT_EQ(CoresOfRunner(4, 1), 1);
  EXPECT_EQ(CoresOfRunner(8, 1), 2);
  EXPECT_EQ(CoresOfRunner(16, 1), 2);
  EXPECT_EQ(CoresOfRunner(16, 2), 2);
  EXPECT_EQ(CoresOfRunner(16, 8), 1);
  EXPECT_EQ(CoresOfRunner(15, 8), 0);
  EXPECT_EQ(CoresOfRunner(128, 8), 2);
  EXPECT_EQ(CoresOfRunner(4, 8), 0);
}

TEST_F(WorkerPlacesTest, OneGpuOnOneNode) {
  EXPECT_EQ(Place("0-15", {Gpu(0x3b, "0-15", 0)}), (Texts{"14-15", "0-13"}));
}

TEST_F(WorkerPlacesTest, TwoGpusOnOneNodeAndOnTwo) {
  EXPECT_EQ(Place("0-15", {Gpu(1, "0-15", 0), Gpu(2, "0-15", 0)}),
            (Texts{"14-15", "12-13", "0-11"}));
  EXPECT_EQ(Place("0-15", {Gpu(1, "0-7", 0), Gpu(2, "8-15", 1)}),
            (Texts{"6-7", "14-15", "0-5,8-13"}));
}

TEST_F(WorkerPlacesTest, EightGpusOnTwoNodesWithTwoThreadsACore) {
  Threads(64, 32);
  Texts gpus;
  for (int i = 0; i < 8; ++i) gpus.push_back(Gpu(i, i < 4 ? "0-15,32-47" : "16-31,48-63", i / 4));
  EXPECT_EQ(Place("0-63", gpus), (Texts{"15,47", "14,46", "13,45", "12,44", "31,63", "30,62",
                                        "29,61", "28,60", "0-11,16-27,32-43,48-59"}));
}

// A control group leaves cores of one node alone, or few of one.
TEST_F(WorkerPlacesTest, CoresThatAreExcluded) {
  const std::string first = Gpu(1, "0-7", 0), second = Gpu(2, "8-15", 1);
  EXPECT_EQ(Place("8-23", {first, second}), (Texts{"22-23", "14-15", "8-13,16-21"}));
  EXPECT_EQ(Place("0-7", {second}), (Texts{"6-7", "0-5"}));
  // The second GPU's only near core stays its own.
  EXPECT_EQ(Place("0-6,8,16-23", {first, second}), (Texts{"5-6", "8,23", "0-4,16-22"}));
}

// A machine without nodes has files that say so, or none.
TEST_F(WorkerPlacesTest, NoNodes) {
  EXPECT_EQ(Place("0-15", {Gpu(1, "", -1)}), (Texts{"14-15", "0-13"}));
  EXPECT_EQ(Place("0-15", {Gpu(1, "nonsense", -1), "0000:77:00.0"}),
            (Texts{"14-15", "12-13", "0-11"}));
  EXPECT_EQ(Place("0-15", {""}), (Texts{"14-15", "0-13"}));
}

// The node's own file counts where the device has no list.
TEST_F(WorkerPlacesTest, TheNodeOfTheDevice) {
  File("/sys/devices/system/node/node1/cpulist", "8-11\n");
  EXPECT_EQ(Place("0-15", {Gpu(1, "", 1)}), (Texts{"10-11", "0-9,12-15"}));
}

TEST_F(WorkerPlacesTest, MoreGpusThanCores) {
  const Texts gpus(8, Gpu(1, "0-3", 0));
  EXPECT_EQ(Place("0-3", gpus), Texts(9, ""));
  EXPECT_EQ(Place("0-3", {}), Texts{""});
}

}  // namespace
}  // namespace kiln::client
