// Measures how many best records a second a large database answers, while another thread adds
// records.
//   bazel run //store:store_bench -- DB RECORDS [SECONDS] [THREADS]
// Fills DB up to RECORDS, of 1,000 computations on two targets each (one of them has a tenth of all
// records), and keeps DB: the next run queries at once. RECORDS 0: queries the workload keys that
// DB has, whoever filled it, and writes nothing.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/hash/digest.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

constexpr int kComputations = 1'000;
constexpr int64_t kBatch = 10'000;

double NowSeconds() { return Clock::Real().MonotonicSeconds(); }

std::string IdOf(int computation) { return Sha256Hex(fmt::format("{}", computation)); }
std::string KeyOf(int computation) {
  // Ten computations share a key.
  return fmt::format(R"(["{}", [1, 56, 56, 64]])", Md5Hex(fmt::format("{}", computation / 10)));
}

// The record is as long as a real one: a schedule of a convolution has some 40 steps.
Record MakeRecord(uint32_t trial, std::mt19937_64& rng) {
  const int computation = rng() % 10 == 0 ? 0 : static_cast<int>(rng() % kComputations);
  Record r;
  r.job_id = "bench";
  r.trial = trial;
  r.workload_id = IdOf(computation);
  r.workload_key = KeyOf(computation);
  r.dag = fmt::format("# computation {}\n{}", computation, std::string(600, 'x'));
  r.target = rng() % 2 == 0 ? "cuda -arch=sm_90" : "llvm -mcpu=sapphirerapids";
  r.hardware = {-1, 16, 64, 49152, 2147483647, 1024, 8, 32};
  r.steps = "[";
  for (int step = 0; step < 20; ++step) {
    r.steps += fmt::format(R"(["SP", {}, {}, 56, [{}, {}], 1], )", step, step, rng() % 56, trial);
  }
  r.steps += R"(["AN", 0, 0, 3]])";
  r.costs_s = {1e-6 * static_cast<double>(1'000 + rng() % 1'000'000)};
  r.error = rng() % 20 == 0 ? 5 : 0;
  r.stopped_early = rng() % 4 == 0;
  r.timestamp_s = 1'700'000'000 + trial;
  r.device = "NVIDIA H100";
  r.builder = r.runner = "worker-1";
  r.flop_count = 1e9;
  return r;
}

Status Fill(Store& store, int64_t wanted, std::mt19937_64& rng) {
  const Status added = store.AddJob({.id = "bench"});
  if (added.code() != StatusCode::kAlreadyExists) KILN_RETURN_IF_ERROR(added);
  KILN_ASSIGN_OR_RETURN(const TrialCounts counts, store.CountTrials("bench"));
  const double start_s = NowSeconds();
  for (int64_t next = counts.next_trial; next < wanted; next += kBatch) {
    std::vector<Record> batch;
    for (int64_t i = 0; i < kBatch; ++i) {
      batch.push_back(MakeRecord(static_cast<uint32_t>(next + i), rng));
    }
    KILN_RETURN_IF_ERROR(store.AddRecords(batch).status());
  }
  const double took_s = NowSeconds() - start_s;
  if (wanted > counts.total) {
    fmt::print("{} records added in {:.0f} s: {:.0f} a second\n", wanted - counts.total, took_s,
               static_cast<double>(wanted - counts.total) / took_s);
  }
  return OkStatus();
}

// Adds batches of 16, like a job's commits, as often as the disk takes them, until `stop`.
int64_t Write(Store& store, uint32_t next, const std::atomic<bool>& stop) {
  std::mt19937_64 rng(next);
  int64_t written = 0;
  while (!stop) {
    std::vector<Record> batch;
    for (int i = 0; i < 16; ++i) batch.push_back(MakeRecord(next++, rng));
    const Status status = store.AddRecords(batch).status();
    KILN_CHECK(status.ok(), "{}", Message(status));
    written += static_cast<int64_t>(batch.size());
  }
  return written;
}

// Returns the workloads to query: the keys of the first records, each as often as they have it.
StatusOr<std::vector<WorkloadRef>> KeysOf(Store& store) {
  constexpr size_t kMax = 10'000;
  std::vector<WorkloadRef> workloads;
  const Status status = store.ForEachRecord({}, [&](const Record& record) {
    workloads.push_back({.id = {}, .keys = {record.workload_key}});
    return workloads.size() < kMax ? OkStatus() : Cancelled("enough");
  });
  if (!workloads.empty()) return workloads;
  return status.ok() ? NotFound("the database has no records") : status;
}

std::vector<WorkloadRef> OwnComputations() {
  std::vector<WorkloadRef> workloads;
  for (int c = 0; c < kComputations; ++c) {
    const WorkloadRef workload = {.id = IdOf(c), .keys = {KeyOf(c)}};
    workloads.insert(workloads.end(), c == 0 ? kComputations / 10 : 1, workload);
  }
  return workloads;
}

// Returns the seconds of each query.
std::vector<double> Ask(Store& store, const std::vector<WorkloadRef>& workloads, uint64_t seed,
                        double end_s) {
  std::mt19937_64 rng(seed);
  std::vector<double> took_s;
  for (double now_s = NowSeconds(); now_s < end_s;) {
    const auto best = store.BestRecords(workloads[rng() % workloads.size()], "");
    KILN_CHECK(best.ok() && !best->empty(), "{}", Message(best.status()));
    const double then_s = std::exchange(now_s, NowSeconds());
    took_s.push_back(now_s - then_s);
  }
  return took_s;
}

Status Measure(Store& store, const std::vector<WorkloadRef>& workloads, double seconds, int threads,
               bool with_writer) {
  TrialCounts counts;
  if (with_writer) {
    KILN_ASSIGN_OR_RETURN(counts, store.CountTrials("bench"));
  }
  std::atomic<bool> stop = false;
  int64_t written = 0;
  std::thread writer;
  if (with_writer) writer = std::thread([&] { written = Write(store, counts.next_trial, stop); });
  std::vector<std::vector<double>> each(static_cast<size_t>(threads));
  std::vector<std::thread> readers;
  const double end_s = NowSeconds() + seconds;
  for (int t = 0; t < threads; ++t) {
    readers.emplace_back(
        [&, t] { each[static_cast<size_t>(t)] = Ask(store, workloads, t + 1, end_s); });
  }
  for (std::thread& reader : readers) reader.join();
  stop = true;
  if (writer.joinable()) writer.join();
  std::vector<double> all;
  for (const auto& some : each) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) {
    return 1e6 * all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))];
  };
  fmt::print(
      "{} threads{}: {:.0f} queries a second; p50 {:.0f} us, p99 {:.0f} us, p99.9 "
      "{:.0f} "
      "us, longest {:.0f} us\n",
      threads,
      with_writer ? fmt::format(" beside {:.0f} records a second written",
                                static_cast<double>(written) / seconds)
                  : std::string(),
      static_cast<double>(all.size()) / seconds, at(0.5), at(0.99), at(0.999), at(1));
  return OkStatus();
}

Status Bench(const std::string& path, int64_t records, double seconds, int threads) {
  KILN_ASSIGN_OR_RETURN(const auto store, OpenSqliteStore(path));
  if (records == 0) {
    KILN_ASSIGN_OR_RETURN(const std::vector<WorkloadRef> workloads, KeysOf(*store));
    return Measure(*store, workloads, seconds, threads, /*with_writer=*/false);
  }
  std::mt19937_64 rng(1);
  KILN_RETURN_IF_ERROR(Fill(*store, records, rng));
  const std::vector<WorkloadRef> workloads = OwnComputations();
  KILN_RETURN_IF_ERROR(Measure(*store, workloads, seconds, threads, /*with_writer=*/false));
  return Measure(*store, workloads, seconds, threads, /*with_writer=*/true);
}

}  // namespace
}  // namespace kiln::store

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: store_bench DB RECORDS [SECONDS] [THREADS]\n");
    return 1;
  }
  const kiln::Status status =
      kiln::store::Bench(argv[1], std::atoll(argv[2]), argc > 3 ? std::atof(argv[3]) : 5,
                         argc > 4 ? std::atoi(argv[4]) : 2);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
