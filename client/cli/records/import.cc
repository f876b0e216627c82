// kiln records import adds the lines of logs, or all of other databases.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file/file.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/bindings.h"
#include "client/cli/records/commands.h"
#include "client/cli/records/log_output.h"
#include "client/cli/session_flags.h"
#include "client/log_lines.h"
#include "client/view/json.h"
#include "compiler/schedule/step.h"
#include "store/import_log.h"
#include "store/measure_log.h"

namespace kiln::client {
namespace {

struct ImportFlags {
  // Logs, "-" for stdin, or databases.
  std::vector<std::string> paths;
  // A file for the refused lines; "": they are only listed.
  std::string rejected;
  // Bindings that are made before (bindings.h).
  std::vector<std::string> bind;
};

// Prints the result for lines whose key is bound.
void PrintBound(const v1::ImportRecordsReply& reply) {
  if (reply.fitting() + reply.unfit() == 0) return;
  const auto fitting = static_cast<int64_t>(reply.fitting());
  const auto unfit = static_cast<int64_t>(reply.unfit());
  fmt::print(stderr, "{} {} what {} key is bound to\n", Counted(fitting, "line"),
             fitting == 1 ? "fits" : "fit", fitting == 1 ? "its" : "their");
  if (unfit == 0) return;
  fmt::print(stderr, "{} {} not fit it and {} imported unbound; {}\n", Counted(unfit, "line"),
             unfit == 1 ? "does" : "do", IsOrAre(unfit), Printable(reply.first_unfit()));
}

// Copies the lines that every import would refuse, unchanged.
Status KeepRefusedLines(const std::string& path, AtomicFile& refused) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  std::string line;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return OkStatus();
    if (store::IsMeasureLogComment(line)) continue;
    const auto record = store::RecordOfLogLine(line, schedule::CheckStepsText);
    if (!record.ok()) KILN_RETURN_IF_ERROR(refused.Append(line + "\n"));
  }
}

bool IsDatabase(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::error_code error;
  // A pipe can be read only once.
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  char head[kMagic.size()] = {};
  file.read(head, sizeof(head));
  return std::string_view(head, sizeof(head)) == kMagic;
}

Status Merge(const std::string& path, Archive& archive, bool json) {
  KILN_ASSIGN_OR_RETURN(const store::MergeResult result, archive.Merge(path));
  if (json) {
    fmt::print(
        "{{\"path\":{},\"jobs\":{},\"records\":{},\"autotvm\":{},\"duplicates\":{},"
        "\"conflicts\":{},\"first_conflict\":{}}}\n",
        JsonString(path), result.jobs, result.records, result.autotvm, result.duplicates,
        result.conflicts, JsonString(result.first_conflict));
    return OkStatus();
  }
  fmt::print(
      "{}: {} and {}{} merged into {}; there already: {}\n", path, Counted(result.jobs, "job"),
      Counted(result.records, "record"),
      result.autotvm > 0 ? fmt::format(" and {} of autotvm", FormatCount(result.autotvm)) : "",
      archive.Name(), FormatCount(result.duplicates));
  if (result.conflicts > 0) {
    fmt::print(stderr, "{}: {} left out, since {} has something else in their place; {}\n", path,
               FormatCount(result.conflicts), archive.Name(), Printable(result.first_conflict));
  }
  return OkStatus();
}

void PrintImported(const std::string& path, const v1::ImportRecordsReply& reply,
                   const Archive& archive) {
  const auto count = [](uint64_t n) { return FormatCount(static_cast<int64_t>(n)); };
  fmt::print("{} imported into {}, {} there already, {} refused\n", count(reply.imported()),
             archive.Name(), count(reply.duplicates()), count(reply.refused()));
  if (reply.autotvm() > 0) {
    fmt::print("{} of them {} of autotvm\n", count(reply.autotvm()),
               IsOrAre(static_cast<int64_t>(reply.autotvm())));
  }
  if (reply.ignored() > 0) {
    fmt::print(stderr, "{}: {} ignored, of autotvm's version 0.1, which autotvm ignores too\n",
               path, Counted(static_cast<int64_t>(reply.ignored()), "line"));
  }
}

// Imports one log. Returns the number of refused lines.
StatusOr<int64_t> ImportOne(const std::string& path, Archive& archive, bool json) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  KILN_ASSIGN_OR_RETURN(const v1::ImportRecordsReply reply, archive.Import(lines));
  PrintRemark(path, lines.VersionRemark());
  if (json) {
    fmt::print("{}\n", JsonOf(reply));
  } else {
    PrintImported(path, reply, archive);
  }
  PrintBound(reply);
  for (const std::string& error : reply.errors()) {
    fmt::print(stderr, "kiln: {}: {}\n", path, Printable(error));
  }
  const auto refused = static_cast<int64_t>(reply.refused());
  if (refused > reply.errors_size()) {
    fmt::print(stderr, "kiln: {}: and {} more\n", path, FormatCount(refused - reply.errors_size()));
  }
  return refused;
}

Status KeepAllRefusedLines(const ImportFlags& flags) {
  KILN_ASSIGN_OR_RETURN(AtomicFile refused, AtomicFile::Create(flags.rejected));
  for (const std::string& path : flags.paths) {
    if (path == "-") return InvalidArgument("--rejected reads the log twice: expected a file");
    if (!IsDatabase(path)) KILN_RETURN_IF_ERROR(KeepRefusedLines(path, refused));
  }
  return refused.Commit();
}

// The keys of a line tell its kind: a log may have lines of both kinds.
Status Import(const ImportFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::vector<Binding> bindings, ParseBindings(flags.bind));
  if (!flags.rejected.empty()) KILN_RETURN_IF_ERROR(KeepAllRefusedLines(flags));
  // A log that does not exist makes no database.
  for (const std::string& path : flags.paths) {
    const bool is_there = path == "-" || FileExists(path);
    if (!is_there) KILN_RETURN_IF_ERROR(LogLines::Open(path).status());
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive(/*write=*/true));
  for (const Binding& binding : bindings) {
    KILN_RETURN_IF_ERROR(Bind(binding, *archive).status());
  }
  int64_t refused = 0;
  std::string where;
  for (const std::string& path : flags.paths) {
    if (IsDatabase(path)) {
      KILN_RETURN_IF_ERROR(Merge(path, *archive, session.json));
      continue;
    }
    KILN_ASSIGN_OR_RETURN(const int64_t of_log, ImportOne(path, *archive, session.json));
    if (of_log > 0) where += (where.empty() ? "" : ", ") + path;
    refused += of_log;
  }
  if (refused == 0) return OkStatus();
  return InvalidArgument(
      "{}: {} refused, the others are imported{}", where, Counted(refused, "line"),
      flags.rejected.empty() ? "" : fmt::format("; {} has what was refused", flags.rejected));
}

}  // namespace

Run AddRecordsImport(CLI::App& in, SessionFlags& session) {
  const auto flags = std::make_shared<ImportFlags>();
  in.description("add the lines of logs, or all of other databases");
  in.add_option("file", flags->paths,
                "logs of auto_scheduler or of autotvm, - = stdin; or databases of Kiln")
      ->required();
  in.add_option("--rejected", flags->rejected, "write the lines that are refused to this file");
  AddBindings(in, flags->bind);
  session.AddPlace(in);
  return Plain([flags](const Session& session) { return Import(*flags, session); });
}

}  // namespace kiln::client
