// A cost model ranks programs by their feature rows, as in Ansor (OSDI 2020, section 5.2). It sees
// floats only.
//
// A program is a matrix with one row for each store. Scores order the programs of one task; a
// higher score is a faster program. There are two scales. A model that estimates times gives minus
// the seconds of the program. A model that learns from measurements alone gives the throughput
// relative to the best of the task, which lies between about 0 and 1.
//
// Thread-safe: any number of threads may predict, also while another one is in Update; they see the
// model as it was before until Update is done. The same calls in the same order, with the same seed
// and number of threads, give the same scores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/float_matrix.h"
#include "base/status.h"
#include "costmodel/column_importance.h"

namespace kiln::costmodel {

// One measured program.
struct Sample {
  // Shared: the model keeps it for later trainings.
  std::shared_ptr<const FloatMatrix> rows;
  // Costs of different tasks are never compared: each task's throughputs are normalised by its
  // best one. Any stable identity, for instance a hash of workload and target.
  uint64_t task = 0;
  std::optional<double> cost_s = {};  // none: the program failed; it counts as infinitely slow
  // Measured by an earlier job, for another task. The more other samples there are, the less it
  // weighs.
  bool prior = false;
  // Corrects the cost of an earlier sample: that with the same `rows` pointer. Ignored if the model
  // no longer has it.
  bool corrects = false;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual std::string_view name() const = 0;

  // Learns from samples not given before, but for corrections; may train, which takes from nothing
  // to seconds. Refuses all of them if one has another number of columns, or a value or cost that
  // is not finite; on error the model scores as before.
  virtual Status Update(std::vector<Sample> samples) = 0;

  // A score for each program. A program without rows scores minus infinity.
  virtual std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const = 0;
  // A score for each row of one program: the lowest makes it slow.
  virtual std::vector<double> PredictRows(const FloatMatrix& program) const = 0;

  // Has it learned enough to be better than chance? A search without it explores more.
  virtual bool trained() const = 0;

  // Of the columns that the scores depend on, the most important first. Empty: it is not trained, or
  // does not know.
  virtual std::vector<ColumnImportance> Importance() const { return {}; }

  // The model as bytes, samples not included. Load refuses bytes that are damaged or of another
  // kind of model, version or meaning of columns.
  virtual StatusOr<std::string> Save() const = 0;
  virtual Status Load(std::string_view bytes) = 0;
};

}  // namespace kiln::costmodel
