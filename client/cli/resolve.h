// What a user means by WORKLOAD, JOB, RECORD, an operator or a text file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/computations.h"
#include "client/view/format.h"

namespace kiln::client {

// A record, a job or a workload.
struct Subject {
  std::optional<v1::Record> record;
  std::string job_id;
  // Of a workload: both where an operator or a file was named, otherwise what was said.
  std::string workload_id;
  std::vector<std::string> workload_keys;
  dag::DagPtr dag;  // where an operator or a file was named

  bool is_workload() const { return !workload_id.empty() || !workload_keys.empty(); }
};

// In this order: --record; the name of a trial, JOB/N; an operator, text file, or kernel (with its
// space); a workload key
// (starts with '['); the identity of a computation (64 hex digits); a job; the number of a record.
// Where --op says what something else is of, that decides. Nothing at all: the newest job that has
// a task.
StatusOr<Subject> Resolve(const SubjectFlags& flags, Archive& archive);

// The workload that the arguments name, without looking at any record; nullopt: they name none.
StatusOr<std::optional<Workload>> NamedWorkload(const SubjectFlags& flags);

// NotFound says which there are.
StatusOr<v1::Record> FindTrial(const NamedTrial& trial, Archive& archive);

// The best records of the subject (or the record itself), those of flags.target (what it begins
// with, or a target that means the same) and flags.task if given, one where targets mean the same;
// of a job without tasks, as an import is, one for each workload and target. Of variants of one
// group the fastest comes first. Of a kernel's file they are those of its configurations. A key may mean several computations: then there are records of
// each. Never empty: NotFound says what there is none for.
StatusOr<std::vector<v1::Record>> BestOf(const Subject& subject, const SubjectFlags& flags,
                                         Archive& archive);

// The computations of the records, in their order, each once. Descriptions are those of the
// archive's tasks.
StatusOr<std::vector<NamedComputation>> ComputationsOfRecords(
    const std::vector<v1::Record>& records, Archive& archive);

// The first of BestOf, for commands that show one record: InvalidArgument where the records are of
// several computations.
StatusOr<v1::Record> OneBestOf(const Subject& subject, const SubjectFlags& flags, Archive& archive);

// The record's own DAG; of an imported one, which has none, that of the subject's operator or of
// the one computation that its key stands for. InvalidArgument where it stands for several, or
// where its steps do not fit it.
StatusOr<dag::DagPtr> DagOfRecord(const v1::Record& record, const Subject& subject,
                                  Archive& archive);

}  // namespace kiln::client
