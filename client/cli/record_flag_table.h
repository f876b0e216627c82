// The command line of best, show, export-kernel, trial and records.
#pragma once

#include <string>
#include <vector>

#include "client/cli/bindings.h"
#include "client/cli/commands.h"
#include "client/cli/flag_table.h"
#include "client/cli/job_options.h"
#include "client/cli/record_list.h"
#include "client/cli/record_logs.h"

namespace kiln::client {

// Must outlive the parse and the run, and so must `table`.
class RecordFlagTable {
 public:
  explicit RecordFlagTable(FlagTable& table) : flag_table_(table) {}
  RecordFlagTable(const RecordFlagTable&) = delete;
  RecordFlagTable& operator=(const RecordFlagTable&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddBest(CLI::App& app);
  void AddShow(CLI::App& app);
  void AddExportKernel(CLI::App& app);
  void AddTrial(CLI::App& app);
  void AddRecord(CLI::App& command);

  void AddRecords(CLI::App& app);
  void AddExport(CLI::App& records);
  void AddImport(CLI::App& records);
  void AddBind(CLI::App& records);
  static void AddFormat(CLI::App& command, std::string& format);
  static void AddBindings(CLI::App& command, std::vector<std::string>& bind);
  void AddDistill(CLI::App& records);
  void AddMeasure(CLI::App& records);
  void AddStats(CLI::App& records);
  void AddList(CLI::App& records);
  void AddDelete(CLI::App& records);
  void AddPrune(CLI::App& records);
  void AddCurve(CLI::App& records);
  // Adds the selection of records: by computation, place and time of measuring, and number.
  void AddSelection(CLI::App& command);
  void AddFilter(CLI::App& command);

  Status RunShow() const;
  StatusOr<int> RunMeasure() const;
  StatusOr<int> RunTrial() const;

  FlagTable& flag_table_;
  SubjectFlags subject_;
  std::string form_ = "schedule", steps_;
  std::vector<std::string> leave_out_;
  bool sketches_ = false;
  std::string schedule_, keep_;
  ExportFlags exported_;
  std::string output_;
  ImportFlags imported_;
  BindFlags bound_;
  DistillFlags distilled_;
  MeasureLogFlags measured_;
  RecordFilterFlags filter_;
  DeleteFlags deleted_;
  PruneFlags pruned_;
  CurveFlags curve_;
  MeasuringOptions measuring_;
};

}  // namespace kiln::client
