// A cost model ranks programs by their feature rows, as in Ansor (OSDI 2020, section 5.2). The
// model sees only floats.
//
// A program is a matrix with one row for each store. Scores order the programs of one task; a
// higher score is a faster program. There are two scales. A model that estimates times gives minus
// the seconds of the program. A model that learns from measurements alone gives the throughput
// relative to the best of the task, which lies between about 0 and 1.
//
// Thread-safe: any number of threads may predict, also while another one is in Update; until Update
// is done they see the model as it was before. The same calls in the same order, with the same seed
// and number of threads, give the same scores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/float_matrix.h"
#include "base/status.h"
#include "costmodel/column_importance.h"

namespace kiln::costmodel {

// One measured program.
struct Sample {
  // Shared, because the model keeps the rows for later trainings.
  std::shared_ptr<const FloatMatrix> rows;
  // A stable identity of the task, for instance a hash of workload and target. Costs of different
  // tasks are never compared: each task's throughputs are normalised by its best one.
  uint64_t task = 0;
  std::optional<double> cost_s = {};  // none: the program failed; it counts as infinitely slow
  // Whether the sample was measured by an earlier job, for another task. Such a sample weighs the
  // less the more other samples there are.
  bool prior = false;
  // Tells the sample from the others of its task: a hash of its schedule. 0 for a sample that is
  // never corrected.
  uint64_t id = 0;
  // Whether the sample corrects the cost of an earlier sample, the one with the same task and id.
  // Ignored if the model no longer has that sample.
  bool corrects = false;
  // Steps of the program's schedule as JSON, for models that read steps.
  std::string steps = {};
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual std::string_view name() const = 0;

  // Learns from samples that were not given before, and from corrections. May train, which takes
  // from no time to seconds. Refuses all samples if one has another number of columns, or a value
  // or cost that is not finite. On error the model scores as before.
  virtual Status Update(std::vector<Sample> samples) = 0;

  // Returns a score for each program. A program without rows scores minus infinity.
  virtual std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const = 0;
  // Tells whether the model also reads the steps of schedules. If not, callers need not print them.
  virtual bool reads_steps() const { return false; }
  // Like Predict, for a model that reads steps. `steps` has the steps of each program as JSON.
  virtual std::vector<double> PredictSchedules(std::span<const FloatMatrix* const> programs,
                                               std::span<const std::string> steps) const {
    (void)steps;
    return Predict(programs);
  }
  // Returns a score for each row of one program. The row with the lowest score slows the program
  // most.
  virtual std::vector<double> PredictRows(const FloatMatrix& program) const = 0;

  // Tells whether the model has learned enough to be better than chance. If not, a search explores
  // more.
  virtual bool trained() const = 0;

  // Returns the columns that the scores depend on, the most important first. Empty if the model is
  // not trained or cannot tell.
  virtual std::vector<ColumnImportance> Importance() const { return {}; }

  // Returns the model as bytes, without samples. Load refuses bytes that are damaged, or that
  // belong to another kind of model, version or meaning of columns.
  virtual StatusOr<std::string> Save() const = 0;
  virtual Status Load(std::string_view bytes) = 0;
};

}  // namespace kiln::costmodel
