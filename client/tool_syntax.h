// ops, check, doctor, selftest, conformance, version on the command line.
#pragma once

#include <string>

#include "client/commands.h"
#include "client/job_options.h"
#include "client/syntax.h"

namespace kiln::client {

// Must outlive the parse and the run, as `syntax` must.
class ToolSyntax {
 public:
  explicit ToolSyntax(Syntax& syntax) : syntax_(syntax) {}
  ToolSyntax(const ToolSyntax&) = delete;
  ToolSyntax& operator=(const ToolSyntax&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddOps(CLI::App& app);
  void AddCheck(CLI::App& app);
  void AddDoctor(CLI::App& app);
  void AddSelfTest(CLI::App& app);
  void AddConformance(CLI::App& app);
  void AddVersion(CLI::App& app);

  StatusOr<int> RunSelfTest() const;
  StatusOr<int> RunConformance() const;

  Syntax& syntax_;
  std::string operator_;
  WorkloadWords words_;
  SelfTestFlags selftest_;
  ConformanceFlags conformance_;
  JobOptions options_;  // of the jobs of conformance
};

}  // namespace kiln::client
