#include "rpc/field_limits.h"

#include <google/protobuf/unknown_field_set.h>

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/text/utf8.h"

namespace kiln {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using ProtoMessage = google::protobuf::Message;

struct Limit {
  // Most bytes of a string.
  size_t bytes = 1024;
  // Most items of a list or a map.
  int items = 1024;
};

// Ids, keys, addresses and users.
constexpr size_t kName = 256;
// Texts of computations and schedules.
constexpr size_t kProgram = 16 << 20;
// Texts that people write: templates and kernels.
constexpr size_t kWritten = 1 << 20;
constexpr size_t kBinary = 64 << 20;
constexpr size_t kUnknownBytes = 64 << 10;

// Limits by the field's name without the package, "WorkerState.keys". Other fields have Limit().
const std::map<std::string_view, Limit>& Limits() {
  static const auto* limits = new std::map<std::string_view, Limit>{
      {"WorkerState.id", {kName}},
      {"WorkerState.address", {kName}},
      {"WorkerState.http_address", {kName}},
      {"WorkerState.keys", {kName, 64}},
      {"WorkerState.device", {kName}},
      {"WorkerState.version", {kName}},
      {"WorkerState.asked_by", {kName}},
      {"WorkerState.drifts", {0, 100}},
      {"DriftSpan.device", {kName}},
      {"DriftSpan.worker", {kName}},
      {"SetWorkerModeRequest.worker", {kName}},
      {"SetWorkerModeRequest.user", {kName}},
      {"DeviceModel.name", {kName}},
      {"Lease.id", {kName}},
      {"Lease.user", {kName}},
      {"AcquireRequest.request_id", {kName}},
      {"AcquireRequest.scheduler_id", {kName}},
      {"AcquireRequest.key", {kName}},
      {"AcquireRequest.user", {kName}},
      {"AcquireRequest.avoid_worker_ids", {kName, 10'000}},
      {"RenewRequest.scheduler_id", {kName}},
      {"RenewRequest.leases", {0, 4'096}},
      {"ReleaseRequest.scheduler_id", {kName}},
      {"ReleaseRequest.lease_ids", {kName, 4'096}},
      {"ReleaseRequest.request_ids", {kName, 4'096}},
      {"TaskSpec.dag", {kProgram}},
      {"TaskSpec.description", {4'096}},
      {"TaskSpec.preparation", {64 << 10}},
      {"TuneOptions.faults", {0, 100'000}},
      {"TuneOptions.schedule_template", {kWritten}},
      {"TuneOptions.kernel", {kWritten}},
      {"JobSpec.user", {kName}},
      {"JobSpec.request_id", {kName}},
      {"SubmitRequest.request_id", {kName}},
      {"SubmitRequest.traceparent", {kName}},
      {"JobSpec.tasks", {0, 10'000}},
      {"ServedCode.sketch_rules", {kName, 64}},
      {"CallbackReply.job_id", {kName}},
      {"CallbackReply.user", {kName}},
      {"CallbackReply.error", {64 << 10}},
      {"CallbackReply.values", {0, 1'000'000}},
      {"CallbackReply.applied", {0, 100'000}},
      {"CallbackReply.binary", {kBinary}},
      {"AppliedRule.made", {0, 10'000}},
      {"RuleState.steps", {kProgram}},
      {"BestRequest.workload_keys", {64 << 10, 64}},
      {"ListRecordsRequest.workload_keys", {64 << 10, 64}},
      {"ListRecordsRequest.key_prefix", {64 << 10}},
      {"BindKeyRequest.workload_key", {64 << 10}},
      {"BindKeyRequest.dag", {kProgram}},
      {"DeleteRecordsRequest.ids", {0, 1'000'000}},
      // An import refuses a long line by its number before the line reaches this limit.
      {"ImportRecordsRequest.line", {2 * kProgram}},
      {"CostModel.info", {16 << 20}},
      {"ModelPart.part", {1 << 20}},
      {"PredictRequest.programs", {0, 4'096}},
      {"ScheduledProgram.dag", {kProgram}},
      {"ScheduledProgram.steps", {kProgram}},
      {"ScheduledProgram.device_model", {4'096}},
      {"QueryScheduleRequest.dag", {kProgram}},
      {"SetScheduleRequest.dag", {kProgram}},
      {"SetScheduleRequest.steps", {kProgram}},
      {"QueryConfigRequest.args", {1 << 20}},
      {"QueryConfigRequest.kwargs", {1 << 20}},
      {"BuildRequest.dag", {kProgram}},
      {"BuildRequest.steps", {kProgram}},
      {"BuildRequest.kernel", {kWritten}},
      {"Artifact.digest", {kName}},
      {"Artifact.binary", {kBinary}},
      {"LaunchPlan.args", {0, 10'000}},
      {"LaunchPlan.launches", {0, 10'000}},
      {"MeasureRequest.reference_digest", {kName}},
  };
  return *limits;
}

// Returns the name without the package: "JobSpec.name".
std::string_view ShortName(const FieldDescriptor& field) {
  const std::string_view name = field.full_name();
  const size_t package = field.file()->package().size();
  return name.substr(package == 0 ? 0 : package + 1);
}

Limit LimitOf(const FieldDescriptor& field) {
  const auto found = Limits().find(ShortName(field));
  return found == Limits().end() ? Limit() : found->second;
}

size_t UnknownBytes(const google::protobuf::UnknownFieldSet& fields) {
  return fields.empty() ? 0 : fields.SpaceUsedLong();
}

Status CheckText(const FieldDescriptor& field, const std::string& text, const Limit& limit) {
  if (text.size() > limit.bytes) {
    return InvalidArgument("{} has {} bytes, at most {} are accepted", ShortName(field),
                           text.size(), limit.bytes);
  }
  if (field.type() == FieldDescriptor::TYPE_STRING && !IsUtf8(text)) {
    return InvalidArgument("{} is not UTF-8 text", ShortName(field));
  }
  return OkStatus();
}

Status CheckList(const ProtoMessage& message, const FieldDescriptor& field, const Limit& limit) {
  const Reflection& reflection = *message.GetReflection();
  const int items = reflection.FieldSize(message, &field);
  if (items > limit.items) {
    return InvalidArgument("{} has {} entries, at most {} are accepted", ShortName(field), items,
                           limit.items);
  }
  for (int i = 0; i < items; ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      KILN_RETURN_IF_ERROR(CheckFields(reflection.GetRepeatedMessage(message, &field, i)));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      std::string scratch;
      KILN_RETURN_IF_ERROR(CheckText(
          field, reflection.GetRepeatedStringReference(message, &field, i, &scratch), limit));
    }
  }
  return OkStatus();
}

Status CheckField(const ProtoMessage& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const Limit limit = LimitOf(field);
  if (field.is_repeated()) return CheckList(message, field, limit);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return CheckFields(reflection.GetMessage(message, &field));
  }
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) return OkStatus();
  std::string scratch;
  return CheckText(field, reflection.GetStringReference(message, &field, &scratch), limit);
}

}  // namespace

Status CheckFields(const ProtoMessage& message) {
  const Reflection& reflection = *message.GetReflection();
  if (const size_t bytes = UnknownBytes(reflection.GetUnknownFields(message));
      bytes > kUnknownBytes) {
    return InvalidArgument(
        "{} has {} bytes in fields that this Kiln does not know, at most {} are accepted",
        message.GetDescriptor()->name(), bytes, kUnknownBytes);
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    KILN_RETURN_IF_ERROR(CheckField(message, *field));
  }
  return OkStatus();
}

}  // namespace kiln
