// The command line of `kiln model`.
#pragma once

#include <string>

#include "client/cli/flag_table.h"
#include "client/cli/model_commands.h"

namespace kiln::client {

// Must outlive the parse and the run, and so must `table`.
class ModelFlagTable {
 public:
  explicit ModelFlagTable(FlagTable& table) : flag_table_(table) {}
  ModelFlagTable(const ModelFlagTable&) = delete;
  ModelFlagTable& operator=(const ModelFlagTable&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddTrain(CLI::App& model);
  void AddShow(CLI::App& model);
  void AddTest(CLI::App& model);
  void AddPredict(CLI::App& model);
  void AddList(CLI::App& model);
  void AddGet(CLI::App& model);
  void AddPut(CLI::App& model);
  void AddDelete(CLI::App& model);
  static void AddModel(CLI::App& command, std::string& model);
  // Adds the records on which a model is trained or tested.
  void AddRecords(CLI::App& command);

  FlagTable& flag_table_;
  ModelRecordsFlags records_;
  TrainModelFlags trained_;
  ShowModelFlags shown_;
  TestModelFlags tested_;
  PredictFlags predicted_;
  std::string name_, path_, output_;
  bool replace_ = false;
};

}  // namespace kiln::client
