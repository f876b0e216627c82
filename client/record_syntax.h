// best, show, export-kernel, trial, records on the command line.
#pragma once

#include <string>
#include <vector>

#include "client/bindings.h"
#include "client/commands.h"
#include "client/job_options.h"
#include "client/record_list.h"
#include "client/syntax.h"

namespace kiln::client {

// Must outlive the parse and the run, as `syntax` must.
class RecordSyntax {
 public:
  explicit RecordSyntax(Syntax& syntax) : syntax_(syntax) {}
  RecordSyntax(const RecordSyntax&) = delete;
  RecordSyntax& operator=(const RecordSyntax&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddBest(CLI::App& app);
  void AddShow(CLI::App& app);
  void AddExportKernel(CLI::App& app);
  void AddTrial(CLI::App& app);
  void AddSubject(CLI::App& command);
  void AddRecord(CLI::App& command);

  void AddRecords(CLI::App& app);
  void AddExport(CLI::App& records);
  void AddImport(CLI::App& records);
  void AddBind(CLI::App& records);
  static void AddBindings(CLI::App& command, std::vector<std::string>& bind);
  void AddDistill(CLI::App& records);
  void AddMeasure(CLI::App& records);
  void AddStats(CLI::App& records);
  void AddList(CLI::App& records);
  void AddDelete(CLI::App& records);
  void AddFilter(CLI::App& command);

  Status RunShow() const;
  StatusOr<int> RunMeasure() const;

  Syntax& syntax_;
  SubjectFlags subject_;
  std::string form_ = "schedule", steps_;
  std::vector<std::string> leave_out_;
  bool sketches_ = false;
  std::string trial_, keep_;
  ExportFlags exported_;
  std::string output_;
  ImportFlags imported_;
  BindFlags bound_;
  DistillFlags distilled_;
  MeasureLogFlags measured_;
  RecordFilterFlags filter_;
  DeleteFlags deleted_;
  MeasuringOptions measuring_;
};

}  // namespace kiln::client
