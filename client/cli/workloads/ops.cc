// kiln ops lists the operators, or the parameters of one.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/terminal.h"
#include "client/cli/session_flags.h"
#include "client/cli/workloads/commands.h"
#include "client/jobs/operator_name.h"
#include "client/view/json.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::client {
namespace {

struct OpsFlags {
  // "": all operators.
  std::string op;
};

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

Status PrintOperators(const OpsFlags& flags, bool json) {
  const std::string& name = flags.op;
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

}  // namespace

Run AddOps(CLI::App& ops, SessionFlags& session) {
  const auto flags = std::make_shared<OpsFlags>();
  ops.description("list the operators, or the parameters of one");
  ops.add_option("operator", flags->op, "one operator");
  session.AddJson(ops);
  return Plain([flags](const Session& session) { return PrintOperators(*flags, session.json); });
}

}  // namespace kiln::client
