// Describes a cost model, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "costmodel/column_importance.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns "1,234 programs of 3 tasks, 12 failed".
std::string LearnedText(const costmodel::ModelInfo& info);

// Returns "xgb over estimates of the analytic model" or the like.
std::string KindText(const costmodel::ModelInfo& info);

// Returns the quality of the model's ranks in a line: "rank correlation 0.84, ...". k is that of
// recall and peak.
std::string QualityText(const costmodel::RankQuality& mean, int k);

// Returns a row for each task with figures of its ranking quality, `columns` wide.
std::string QualityTable(const std::vector<v1::ModelQuality>& tasks, int k, int columns);
std::string QualityJson(const v1::ModelQuality& quality);
costmodel::RankQuality MeanQuality(const std::vector<v1::ModelQuality>& tasks);

// Returns the lines before the tables of `kiln model show`. `label` is the file or the name.
std::string ModelText(const std::string& label, const costmodel::ModelFile& file);
// Returns a row for each task of the training, with the ranking quality on its held-out records.
std::string TasksTable(const costmodel::ModelInfo& info, int columns);
// Returns the `most` most important columns; 0: all.
std::string ImportanceTable(const std::vector<costmodel::ColumnImportance>& importance, int most,
                            int columns);

}  // namespace kiln::client
