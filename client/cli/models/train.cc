// kiln model train makes a cost model from records.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/archive.h"
#include "client/cli/models/commands.h"
#include "client/cli/models/heartbeat.h"
#include "client/cli/models/model_records.h"
#include "client/cli/models/model_text.h"
#include "client/cli/session_flags.h"
#include "client/jobs/model_source.h"
#include "client/jobs/parameters.h"
#include "client/models.h"
#include "client/view/json.h"
#include "costmodel/model_file.h"
#include "scheduler/words/format.h"
#include "training/wire/model_calls.h"

namespace kiln::client {
namespace {

struct TrainModelFlags {
  ModelRecordsFlags records;
  // A file, and a name to keep the model under. At least one of them is set.
  std::string output, name;
  bool replace = false;
  // "max_depth=8".
  std::vector<std::string> parameters;
  bool without_estimates = false;
  double held_out = 0.2;
  bool by_computation = false;
  std::optional<double> if_grown;
};

StatusOr<v1::TrainModelRequest> RequestOf(const TrainModelFlags& flags) {
  v1::TrainModelRequest request;
  request.set_name(flags.name);
  request.set_replace(flags.replace);
  request.set_programs(flags.records.programs);
  request.set_seed(flags.records.seed);
  KILN_ASSIGN_OR_RETURN(const auto parameters, ParseParameters(flags.parameters));
  request.mutable_parameters()->insert(parameters.begin(), parameters.end());
  request.set_without_estimates(flags.without_estimates);
  request.set_held_out(flags.held_out);
  request.set_by_computation(flags.by_computation);
  request.set_k(flags.records.k);
  if (flags.if_grown.has_value()) request.set_if_grown(*flags.if_grown);
  return request;
}

// Returns the model of a file if, by the flags, it need not be trained anew; none: train it.
StatusOr<std::optional<costmodel::ModelFile>> ReusableModel(const TrainModelFlags& flags,
                                                            const RecordsToLearn& records) {
  if (!flags.if_grown.has_value() || !flags.name.empty() || !FileExists(flags.output))
    return std::nullopt;
  KILN_ASSIGN_OR_RETURN(costmodel::ModelFile file, ReadModelSource(flags.output, records.session));
  KILN_ASSIGN_OR_RETURN(const auto archive, records.session.OpenArchive());
  int64_t count = 0;
  KILN_RETURN_IF_ERROR(archive->VisitRecords(records.request, [&](const v1::Record&) {
    ++count;
    return OkStatus();
  }));
  if (training::HasGrown(file.info, count, *flags.if_grown)) return std::nullopt;
  return file;
}

void PrintKept(const std::string& label, const costmodel::ModelInfo& info, uint64_t records,
               double share, bool json) {
  if (json) {
    fmt::print("{{\"model\":{},\"trained\":false,\"records\":{},\"info\":{}}}\n", JsonString(label),
               records, costmodel::PrintModelInfo(info));
    return;
  }
  fmt::print("{}: as it was, of {}; there are {} now, which is not {:.0f}% more\n", label,
             Counted(info.records, "record"), FormatCount(static_cast<int64_t>(records)),
             100 * share);
}

// Trains, and prints progress on stderr, beside the result. A minute of silence would look like a
// hang.
StatusOr<Models::Trained> TrainWithProgress(const v1::TrainModelRequest& request,
                                            std::string_view source, Models& models) {
  constexpr absl::Duration kPeriod = absl::Seconds(5);
  fmt::print(stderr, "kiln: learning from {}\n", source);
  const Heartbeat heartbeat(kPeriod, [](absl::Duration since) {
    fmt::print(stderr, "kiln: still learning, for {}\n",
               FormatElapsed(absl::ToDoubleSeconds(since)));
  });
  return models.Train(request);
}

Status TrainModel(const TrainModelFlags& flags, const Session& session) {
  if (flags.output.empty() && flags.name.empty())
    return InvalidArgument("say where the model goes: -o FILE, --name NAME, or both");
  if (!session.scheduler.empty() && flags.name.empty())
    return InvalidArgument("a scheduler keeps its models under names: --name NAME is missing");
  KILN_ASSIGN_OR_RETURN(v1::TrainModelRequest request, RequestOf(flags));
  KILN_ASSIGN_OR_RETURN(const RecordsToLearn records, RecordsOf(flags.records, session));
  if (!flags.name.empty() && records.folder.has_value()) {
    return InvalidArgument(
        "a model of logs becomes a file: use -o FILE, then `kiln model put FILE --name {}`",
        flags.name);
  }
  *request.mutable_records() = records.request;
  const std::string label = flags.output.empty() ? flags.name : flags.output;
  KILN_ASSIGN_OR_RETURN(const auto still_good, ReusableModel(flags, records));
  if (still_good.has_value()) {
    PrintKept(label, still_good->info, static_cast<uint64_t>(still_good->info.records),
              *flags.if_grown, session.json);
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const auto models,
                        records.session.OpenModels(/*write=*/!flags.name.empty()));
  KILN_ASSIGN_OR_RETURN(
      const Models::Trained trained,
      TrainWithProgress(
          request,
          records.folder.has_value() ? std::string("the logs") : "the records of " + models->Name(),
          *models));
  if (!flags.output.empty()) KILN_RETURN_IF_ERROR(WriteFileAtomically(flags.output, trained.file));
  KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file, costmodel::ParseModelFile(trained.file));
  if (trained.reply.kept()) {
    PrintKept(label, file.info, trained.reply.records(), *flags.if_grown, session.json);
    return OkStatus();
  }
  if (session.json) {
    fmt::print("{{\"model\":{},\"trained\":true,\"records\":{},\"info\":{}}}\n", JsonString(label),
               trained.reply.records(), costmodel::PrintModelInfo(file.info));
  } else {
    fmt::print("{}", ModelText(label, file));
  }
  fmt::print(stderr, "{}", LeftOutText(trained.reply.left_out()));
  return OkStatus();
}

}  // namespace

Run AddModelTrain(CLI::App& train, SessionFlags& session) {
  const auto flags = std::make_shared<TrainModelFlags>();
  train.description("train a model on records, and test it on those that were held out");
  AddModelRecords(train, session, flags->records);
  train.add_option("-o,--output", flags->output, "write it to this file, for instance model.kcm");
  train.add_option("--name", flags->name, "keep it in the database or scheduler under this name");
  train.add_flag("--replace", flags->replace, "with --name: in place of the one that is there");
  train
      .add_option(
          "--held-out", flags->held_out,
          "share of the records that the model is tested on and does not learn from; 0: none")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  train.add_flag("--by-computation", flags->by_computation,
                 "hold out whole computations [some records of each]");
  train.add_flag("--without-estimates", flags->without_estimates,
                 "train trees that do not correct the analytic model");
  train
      .add_option("--parameter", flags->parameters,
                  "of the model: NAME=NUMBER, any number of them (docs/cost-models.md)")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  train
      .add_option("--if-grown", flags->if_grown,
                  "only if there are so many more records than when it was trained last: 0.2 is a "
                  "fifth more")
      ->type_name("SHARE")
      ->check(CLI::NonNegativeNumber);
  return Plain([flags](const Session& session) { return TrainModel(*flags, session); });
}

}  // namespace kiln::client
