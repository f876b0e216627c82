#include "training/record_tasks.h"

#include <utility>

#include "compiler/dag/text.h"
#include "compiler/target/recorded.h"
#include "compiler/target/target.h"
#include "device/device_model.h"

namespace kiln::training {
namespace {

// Returns the model of the device that measured the record, or an empty one if it is not known.
device::DeviceModel ModelOf(const store::Record& record) {
  auto model = device::ParseDeviceModel(record.device_model);
  return model.ok() ? *std::move(model) : device::DeviceModel();
}

}  // namespace

const search::Task* RecordTasks::Find(const store::Record& record) {
  const auto [at, is_new] = tasks_.try_emplace(
      {store::WorkloadName(record), record.target, record.hardware, record.device_model}, nullptr);
  if (!is_new) return at->second.get();
  auto dag = dag::ParseDag(record.dag);
  auto recorded = target::ParseRecordedTarget(record.target);
  if (!dag.ok() || !recorded.ok()) return nullptr;
  at->second = std::make_unique<search::Task>(*std::move(dag), std::move(recorded->target),
                                              HardwareParamsOf(record.hardware),
                                              store::WorkloadName(record), ModelOf(record));
  at->second->stop = stop_;
  return at->second.get();
}

}  // namespace kiln::training
