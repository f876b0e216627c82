// kiln ops, check, doctor and version need no jobs and records.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/terminal.h"
#include "base/units.h"
#include "client/check/doctor.h"
#include "client/cli/commands.h"
#include "client/cli/operator_name.h"
#include "client/cli/version.h"
#include "client/view/json.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::client {
namespace {

// Returns the arguments of an operator: "N,H,W,CO,CI,KH,KW,stride,pad[,dilation[,groups]]",
// "SHAPE,keepdims=0".
std::string Arguments(const dag::OpInfo& op) {
  const std::string text = dag::Signature(op);
  const size_t at = text.find(" takes ");
  return at == std::string::npos ? text : text.substr(at + 7);
}

std::string OpJson(const dag::OpInfo& op) {
  std::string parameters;
  for (const dag::Parameter& parameter : op.parameters) {
    parameters +=
        fmt::format("{}{{\"name\":{},\"doc\":{},\"min\":{},\"max\":{},\"default\":{},\"list\":{}}}",
                    parameters.empty() ? "" : ",", JsonString(parameter.name),
                    JsonString(parameter.doc), parameter.min, parameter.max,
                    parameter.default_value ? fmt::format("{}", *parameter.default_value) : "null",
                    parameter.list);
  }
  return fmt::format(
      "{{\"name\":{},\"family\":{},\"doc\":{},\"takes_shape\":{},\"parameters\":[{}]}}",
      JsonString(op.name), JsonString(op.family), JsonString(op.doc), op.takes_shape, parameters);
}

void PrintOp(const dag::OpInfo& op) {
  fmt::print("{}: {}\n\n  --args {}\n", op.name, op.doc, Arguments(op));
  if (op.parameters.empty()) return;
  Table table({{"Parameter"}, {"Default", Table::kRight}, {"Meaning", Table::kLeft, 12}});
  for (const dag::Parameter& parameter : op.parameters) {
    table.AddRow({parameter.name,
                  parameter.default_value ? fmt::format("{}", *parameter.default_value) : "-",
                  parameter.doc});
  }
  fmt::print("\n{}", table.ToString(OutputColumns(STDOUT_FILENO)));
}

// Prints a line. If it is longer than the terminal is wide, the following lines are indented by
// `indent`.
void PrintWrapped(const std::string& text, int indent) {
  Table table({{"", Table::kLeft, 1, 100}});
  table.AddRow({text});
  const int columns = std::max(40, TerminalColumns(STDOUT_FILENO)) - indent;
  const std::vector<std::string> lines = table.Lines(columns);
  for (size_t i = 2; i < lines.size(); ++i)
    fmt::print("{}{}\n", std::string(i == 2 ? 0 : static_cast<size_t>(indent), ' '), lines[i]);
}

// Prints the operators by family, each with its arguments, and below the computation.
void PrintOps() {
  std::string_view family;
  for (const dag::OpInfo& op : dag::AllOps()) {
    if (op.family != family) fmt::print("{}{}\n", family.empty() ? "" : "\n", op.family);
    family = op.family;
    fmt::print("  ");
    PrintWrapped(fmt::format("{}  --args {}", op.name, Arguments(op)), 8);
    fmt::print("      ");
    PrintWrapped(op.doc, 8);
  }
  fmt::print("\n");
  PrintWrapped(fmt::format("--epilogue: {}", fmt::join(dag::EpilogueNames(), ", ")), 2);
  PrintWrapped(
      "--dtype: float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, float64, int8, int32, "
      "int64",
      2);
  fmt::print("parameters of one: kiln ops OPERATOR\n");
}

}  // namespace

Status OpsCommand(const std::string& name, bool json) {
  if (!name.empty()) {
    KILN_RETURN_IF_ERROR(OperatorOf(name, "").status());
    KILN_ASSIGN_OR_RETURN(const dag::OpInfo* op, dag::FindOp(name));
    if (json) {
      fmt::print("{}\n", OpJson(*op));
    } else {
      PrintOp(*op);
    }
    return OkStatus();
  }
  if (json) {
    for (const dag::OpInfo& op : dag::AllOps()) fmt::print("{}\n", OpJson(op));
    return OkStatus();
  }
  PrintOps();
  return OkStatus();
}

Status CheckCommand(const WorkloadArguments& arguments, bool json) {
  KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(arguments));
  const std::string text = dag::PrintDag(*workload.dag, workload.ranges);
  const std::string key = dag::WorkloadKey(*workload.dag);
  const double flops = workload.dag->flop_count();
  if (json) {
    fmt::print("{{\"dag\":{},\"workload_key\":{},\"flop_count\":{}}}\n", JsonString(text),
               JsonString(key), flops);
    return OkStatus();
  }
  fmt::print("{}\nFLOPs     {}\nworkload  {}\n", text,
             flops < 0 ? "not known" : FormatCount(static_cast<int64_t>(flops)), key);
  return OkStatus();
}

Status DoctorCommand(const Session& session) {
  bool all_ok = true;
  constexpr int kLeastColumns = 12;
  // Enough for all of a finding.
  constexpr int kMostLines = 40;
  Table table({{""}, {"What"}, {"Finding", Table::kLeft, kLeastColumns, kMostLines}});
  const auto findings = Diagnose(session);
  for (const Finding& finding : findings) {
    all_ok &= finding.ok;
    if (session.json) {
      fmt::print("{{\"what\":{},\"ok\":{},\"detail\":{}}}\n", JsonString(finding.what), finding.ok,
                 JsonString(finding.detail));
    } else {
      table.AddRow({finding.ok ? "ok" : "BAD", finding.what, finding.detail});
    }
  }
  if (!session.json) fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  if (all_ok) return OkStatus();
  return FailedPrecondition("something is missing: see the lines marked BAD");
}

Status VersionCommand(bool json) {
  if (!json) {
    fmt::print("{}\n", VersionText());
    return OkStatus();
  }
  std::string fields;
  for (const auto& [name, version] : Versions()) {
    fields += fmt::format("{}{}:{}", fields.empty() ? "" : ",", JsonString(name),
                          version.empty() ? "null" : JsonString(version));
  }
  fmt::print("{{{}}}\n", fields);
  return OkStatus();
}

}  // namespace kiln::client
