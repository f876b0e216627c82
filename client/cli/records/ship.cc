// kiln records ship writes the best records as a file that goes to other machines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/archive.h"
#include "client/cli/records/commands.h"
#include "client/cli/session_flags.h"
#include "client/local_archive.h"
#include "client/shipped/selection.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/generator_version.h"
#include "compiler/target/target.h"
#include "store/shipped_file.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

struct ShipFlags {
  // Databases; none: the session's records.
  std::vector<std::string> paths;
  std::string output;
  std::string device, network;
  // Version of the NVRTC that compiled the programs; "": that of this machine.
  std::string nvrtc;
};

// Names of computations, by identity.
using Descriptions = std::map<std::string, std::string>;

// Adds the names of the archive's computations. If a network is wanted, adds those of its tasks
// alone.
Status AddDescriptions(Archive& archive, const std::string& network, Descriptions& names) {
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(std::nullopt));
  for (const v1::JobStatus& job : jobs) {
    for (const v1::TaskStatus& task : job.tasks()) {
      const std::string& of = task.spec().network();
      if (!network.empty() && of != network && of != "network:" + network) continue;
      names.emplace(task.workload_id(), task.spec().description());
    }
  }
  return OkStatus();
}

StatusOr<std::vector<std::unique_ptr<Archive>>> OpenAll(const ShipFlags& flags,
                                                        const Session& session) {
  std::vector<std::unique_ptr<Archive>> archives;
  for (const std::string& path : flags.paths) {
    KILN_ASSIGN_OR_RETURN(archives.emplace_back(), OpenLocalArchive(path));
  }
  if (flags.paths.empty()) {
    KILN_ASSIGN_OR_RETURN(archives.emplace_back(), session.OpenArchive());
  }
  return archives;
}

bool IsForCuda(const store::Record& record) {
  const auto target = target::ParseTarget(record.target);
  return target.ok() && target->kind == &target::kCuda;
}

// Returns the version of the NVRTC that compiled the record's program.
StatusOr<std::string> NvrtcOf(const store::Record& record, const ShipFlags& flags) {
  if (!IsForCuda(record)) return std::string();
  if (!flags.nvrtc.empty()) return flags.nvrtc;
  const auto nvrtc = codegen::FindNvrtc();
  if (nvrtc.ok()) return fmt::format("{}.{}", nvrtc->major, nvrtc->minor);
  return FailedPrecondition(
      "there are records for CUDA, and no NVRTC here that says which version compiled them: run "
      "kiln records ship where they were measured, or say it with --nvrtc, for instance 12.4");
}

void PrintLeftOut(const LeftOut& left_out) {
  const auto print = [](int64_t count, std::string_view why) {
    if (count > 0) fmt::print(stderr, "{} left out: {}\n", Counted(count, "record"), why);
  };
  print(left_out.unknown, "they came from a log, which names neither computation nor device");
  print(left_out.no_schedule, "they are of unscheduled loops or of hand-written kernels");
  print(left_out.doubtful, "their cost is in doubt or one short reading");
}

Status Ship(const ShipFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archives, OpenAll(flags, session));
  Descriptions names;
  for (const auto& archive : archives)
    KILN_RETURN_IF_ERROR(AddDescriptions(*archive, flags.network, names));
  SelectionOptions options{.device = flags.device, .workloads = {}};
  if (!flags.network.empty()) {
    options.workloads.emplace();
    for (const auto& [id, name] : names) options.workloads->insert(id);
  }
  ShippedSelection selection(std::move(options));
  for (const auto& archive : archives) {
    KILN_RETURN_IF_ERROR(archive->VisitRecords({}, [&](const v1::Record& record) {
      selection.Add(store::RecordOf(record));
      return OkStatus();
    }));
  }
  std::vector<store::ShippedRecord> shipped;
  for (store::Record& record : selection.Finish()) {
    KILN_ASSIGN_OR_RETURN(std::string nvrtc, NvrtcOf(record, flags));
    const auto name = names.find(record.workload_id);
    shipped.push_back({.record = std::move(record),
                       .description = name == names.end() ? "" : name->second,
                       .generator = codegen::kGeneratorVersion,
                       .nvrtc = std::move(nvrtc)});
  }
  if (shipped.empty()) {
    PrintLeftOut(selection.left_out());
    return NotFound("there is no record to ship{}{}: expected records of a search on a device",
                    flags.network.empty() ? "" : " of the network " + flags.network,
                    flags.device.empty() ? "" : " of a device " + flags.device);
  }
  const std::string bytes = store::WriteShippedFile(shipped);
  KILN_RETURN_IF_ERROR(WriteFileAtomically(flags.output, bytes));
  PrintLeftOut(selection.left_out());
  fmt::print(stderr, "{} written to {}, {}\n", Counted(std::ssize(shipped), "record"), flags.output,
             FormatBytes(std::ssize(bytes)));
  return OkStatus();
}

}  // namespace

Run AddRecordsShip(CLI::App& ship, SessionFlags& session) {
  const auto flags = std::make_shared<ShipFlags>();
  ship.description("the best record of each computation and device, as a file for other machines");
  ship.add_option("file", flags->paths,
                  "databases [the records of the database or scheduler]; a log names no device, "
                  "so its records cannot be shipped");
  ship.add_option("-o,--output", flags->output, "the file")->type_name("FILE")->required();
  ship.add_option("--device", flags->device, "only of devices with this in their names");
  ship.add_option("--network", flags->network,
                  "only of tasks of this network, as it was tuned: resnet-18, model.onnx");
  ship.add_option("--nvrtc", flags->nvrtc,
                  "of records for CUDA: the version of the NVRTC that compiled them [that of this "
                  "machine]")
      ->type_name("VERSION");
  session.AddPlace(ship);
  return Plain([flags](const Session& session) { return Ship(*flags, session); });
}

}  // namespace kiln::client
