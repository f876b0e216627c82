// Resolves WORKLOAD, JOB, RECORD, an operator or a text file of the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/archive.h"
#include "client/cli/computations.h"
#include "client/cli/subject_flags.h"
#include "client/jobs/workload_source.h"
#include "scheduler/words/format.h"

namespace kiln::client {

// A record, a job or a workload.
struct Subject {
  std::optional<v1::Record> record;
  std::string job_id;
  // A workload: id and keys if an operator or a file was named, otherwise the one that was given.
  std::string workload_id;
  std::vector<std::string> workload_keys;
  // Set if an operator or a file was named.
  dag::DagPtr dag;

  bool is_workload() const { return !workload_id.empty() || !workload_keys.empty(); }
};

// Tries in this order: --record; the name of a trial, JOB/N; an operator, text file, or kernel
// (with its space); a workload key (starts with '['); the identity of a computation (64 hex
// digits); a job; the number of a record. --op decides for an operator. Without any of them the
// newest job that has a task is the subject.
StatusOr<Subject> Resolve(const SubjectFlags& flags, Archive& archive);

// Returns the workload that the arguments name, without looking at records; nullopt: they name
// none.
StatusOr<std::optional<Workload>> NamedWorkload(const SubjectFlags& flags);

// NotFound lists the existing trials.
StatusOr<v1::Record> FindTrial(const NamedTrial& trial, Archive& archive);

// Returns the record itself, or the best records of the subject, for flags.target (a prefix, or a
// target that means the same) and flags.task if they are given; one record for targets that mean
// the same. A job without tasks, such as an import, has one for each workload and target. The
// fastest of a group's variants comes first. A kernel's file has the records of its configurations.
// A key may mean several computations, with records of each. Never empty: NotFound says for what
// there is none.
StatusOr<std::vector<v1::Record>> BestOf(const Subject& subject, const SubjectFlags& flags,
                                         Archive& archive);

// Returns the computations of the records, in their order, each once, described by these names.
std::vector<NamedComputation> ComputationsOfRecords(const std::vector<v1::Record>& records,
                                                    const Names& names);

// Returns the first record of BestOf, for commands that show one record. InvalidArgument if the
// records have several computations.
StatusOr<v1::Record> OneBestOf(const Subject& subject, const SubjectFlags& flags, Archive& archive);

// Returns the record's own DAG. An imported record has none: it gets that of the subject's
// operator, or that of the one computation for which its key stands. InvalidArgument if the key
// stands for several, or if the record's steps do not fit.
StatusOr<dag::DagPtr> DagOfRecord(const v1::Record& record, const Subject& subject,
                                  Archive& archive);

}  // namespace kiln::client
