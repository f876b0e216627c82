#include "rpc/http/connection_pool.h"

#include <sys/socket.h>

#include <csignal>
#include <utility>

namespace kiln {
namespace {

// A peer that has gone is an error of the call, and OpenSSL writes in a way that raises a signal.
void BlockBrokenPipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// Others may have descriptors of the same connection.
void End(UniqueFd connection) { shutdown(connection.get(), SHUT_RDWR); }

}  // namespace

ConnectionPool::ConnectionPool(const Options& options, Serve serve)
    : options_(options), serve_(std::move(serve)) {}

ConnectionPool::~ConnectionPool() { Stop(); }

void ConnectionPool::Add(UniqueFd connection) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && waiting_.size() < options_.max_waiting) {
      waiting_.push_back(std::move(connection));
      if (waiting_.size() > idle_ && threads_.size() < options_.max_threads) {
        threads_.emplace_back([this] { Run(); });
      }
    }
  }
  if (connection.valid()) return End(std::move(connection));
  changed_.notify_one();
}

bool ConnectionPool::IsFull() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() > idle_;
}

void ConnectionPool::Run() {
  BlockBrokenPipes();
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (stopping_) return;
    UniqueFd connection = std::move(waiting_.front());
    waiting_.pop_front();
    served_.insert(connection.get());
    lock.unlock();
    serve_(connection.get());
    lock.lock();
    served_.erase(connection.get());
    End(std::move(connection));
  }
}

void ConnectionPool::Stop() {
  std::vector<std::thread> threads;
  std::deque<UniqueFd> waiting;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int socket : served_) shutdown(socket, SHUT_RDWR);
    threads.swap(threads_);
    waiting.swap(waiting_);
  }
  changed_.notify_all();
  for (UniqueFd& connection : waiting) End(std::move(connection));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kiln
