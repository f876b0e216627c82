// What is known of a cost model, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "costmodel/column_importance.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// "1,234 programs of 3 tasks, 12 failed".
std::string LearnedText(const costmodel::ModelInfo& info);

// How well it ranks, in a line: "rank correlation 0.84, ...". k: of recall and peak.
std::string QualityText(const costmodel::RankQuality& mean, int k);

// A row for each task, `columns` wide, with figures of how well it is ranked.
std::string QualityTable(const std::vector<v1::ModelQuality>& tasks, int k, int columns);
std::string QualityJson(const v1::ModelQuality& quality);
costmodel::RankQuality MeanQuality(const std::vector<v1::ModelQuality>& tasks);

// The lines in front of the tables of `kiln model show`. `label`: the file or the name.
std::string ModelText(const std::string& label, const costmodel::ModelFile& file);
// A row for each task that it learned from, with how well it ranks what was held out of it.
std::string TasksTable(const costmodel::ModelInfo& info, int columns);
// Those of `importance` that matter most, `most` of them; 0: all.
std::string ImportanceTable(const std::vector<costmodel::ColumnImportance>& importance, int most,
                            int columns);

}  // namespace kiln::client
