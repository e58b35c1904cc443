#include "constrain/batch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <signal.h>
#include <unistd.h>
#endif

#include "constrain/poll.hpp"

namespace constrain {
namespace {

constexpr size_t kMostThreads = Vocabulary::kMostShards;
constexpr size_t kJobsPerThread = 8;
// Waking a thread and waiting for it takes about a third of this, in nanoseconds.
constexpr uint64_t kWorkPerThread = 200'000;
constexpr size_t kMovableTokens = 256;   // which are read again after a move
constexpr std::chrono::milliseconds kWait{10};

#if defined(__unix__) || defined(__APPLE__)
int process_id() { return static_cast<int>(::getpid()); }

// A thread that is made meanwhile gets no signals: those are for the threads of the host.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};
#else
int process_id() { return 0; }
struct NoSignals {};
#endif

// The jobs of one lane number, and who does them.
struct Group {
  std::vector<BatchJob*> jobs;
  enum class Stage : uint8_t { kOpen, kTaken, kDone } stage = Stage::kOpen;
  std::exception_ptr error;
};

// Shared by the caller and its helpers; a helper that comes late finds nothing left to take.
struct Work {
  std::mutex mutex;
  std::condition_variable done;
  std::array<Group, kMostThreads> groups;
  std::atomic<bool> cancelled{false};

  bool take(Group& group) {
    const std::lock_guard lock(mutex);
    if (group.stage != Group::Stage::kOpen) return false;
    group.stage = Group::Stage::kTaken;
    return true;
  }
  // No group is begun any more, and those that are being filled are given up.
  void stop() {
    cancelled = true;
    const std::lock_guard lock(mutex);
    for (Group& group : groups) {
      if (group.stage == Group::Stage::kOpen) group.stage = Group::Stage::kDone;
    }
  }
  // With the mutex held.
  bool finished() const {
    return std::ranges::all_of(groups, [](const Group& g) { return g.stage == Group::Stage::kDone; });
  }
};

void fill_one(BatchJob& job) {
  const MatcherLock lock(*job.matcher);
  if (job.matcher->fill(job.row, job.remaining)) return;
  job.result = BatchJob::Result::kNothing;
  if (job.remaining == Matcher::kNoBudget || job.matcher->is_finished()) return;
  job.needed = job.matcher->tokens_needed();
  if (job.needed > job.remaining) job.result = BatchJob::Result::kOverBudget;
}

void fill_group(Work& work, Group& group) {
  std::exception_ptr error;
  try {
    for (BatchJob* job : group.jobs) fill_one(*job);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(work.mutex);
  group.error = error;
  group.stage = Group::Stage::kDone;
  work.done.notify_all();
}

// Threads that wait for work, for the life of the process.  A child of fork() has none of its
// parent's, so it makes its own.
class Helpers {
 public:
  static Helpers& get() {
    static std::mutex making;
    static Helpers* helpers = nullptr;   // never destroyed: its threads may outlive main()
    const std::lock_guard lock(making);
    if (!helpers || helpers->process_ != process_id()) helpers = new Helpers;
    return *helpers;
  }

  // Offers the work to so many threads; false: no thread can be made.
  void offer(const std::shared_ptr<Work>& work, size_t count) {
    {
      const std::lock_guard lock(mutex_);
      [[maybe_unused]] const NoSignals scope;
      while (threads_ < std::min(count, kMostThreads - 1)) {
        try {
          std::thread([this] { run(); }).detach();
        } catch (const std::system_error&) {
          break;   // the caller does it all
        }
        ++threads_;
      }
      if (threads_ == 0) return;
      for (size_t i = 0; i < std::min(count, threads_); ++i) offers_.push_back(work);
    }
    for (size_t i = 0; i < count; ++i) wanted_.notify_one();
  }

 private:
  Helpers() : process_(process_id()) {}

  void run() {
    while (true) {
      std::shared_ptr<Work> work;
      {
        std::unique_lock lock(mutex_);
        wanted_.wait(lock, [this] { return !offers_.empty(); });
        work = std::move(offers_.front());
        offers_.pop_front();
      }
      const CancelScope scope(work->cancelled);
      // From the back: the caller begins in front.
      for (size_t i = work->groups.size(); i-- > 0;) {
        if (work->take(work->groups[i])) fill_group(*work, work->groups[i]);
      }
    }
  }

  const int process_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::shared_ptr<Work>> offers_;
  size_t threads_ = 0;
};

size_t number_of_lane(const Matcher& matcher) {
  Constraint& constraint = matcher.constraint();
  Lane* const lane = &matcher.lane();
  size_t number = 0;
  while (number + 1 < Constraint::kMostLanes && constraint.existing(number) != lane) ++number;
  return number;
}

// Moves matchers from lanes with too many jobs to lanes with too few.
void balance(std::array<Group, kMostThreads>& groups, size_t threads) {
  size_t total = 0;
  for (const Group& group : groups) total += group.jobs.size();
  const size_t fair = (total + threads - 1) / threads;
  const size_t tolerated = fair + fair / 4;
  for (size_t from = 0; from < groups.size(); ++from) {
    std::vector<BatchJob*>& jobs = groups[from].jobs;
    if (jobs.size() <= tolerated) continue;
    std::vector<BatchJob*> stay;
    while (jobs.size() + stay.size() > fair && !jobs.empty()) {
      BatchJob* const job = jobs.back();
      jobs.pop_back();
      size_t to = 0;
      for (size_t i = 1; i < threads; ++i) {
        if (groups[i].jobs.size() < groups[to].jobs.size()) to = i;
      }
      Lane* const lane =
          to == from || groups[to].jobs.size() >= fair ? nullptr : job->matcher->constraint().lane(to);
      if (!lane) {
        stay.push_back(job);
        continue;
      }
      bool moved = false;
      {
        const MatcherLock lock(*job->matcher);
        moved = job->matcher->tokens().size() <= kMovableTokens;
        if (moved) job->matcher->move_to(*lane);
      }
      if (moved) {
        groups[to].jobs.push_back(job);
      } else {
        stay.push_back(job);
      }
    }
    jobs.insert(jobs.end(), stay.begin(), stay.end());
  }
}

void fill_on_threads(std::span<BatchJob> jobs, size_t threads) {
  const auto work = std::make_shared<Work>();
  for (BatchJob& job : jobs) work->groups[number_of_lane(*job.matcher)].jobs.push_back(&job);
  balance(work->groups, threads);
  size_t used = 0;
  for (Group& group : work->groups) {
    if (group.jobs.empty()) {
      group.stage = Group::Stage::kDone;
    } else {
      ++used;
    }
  }
  if (used > 1) Helpers::get().offer(work, used - 1);
  std::exception_ptr mine;   // what stopped this thread
  for (Group& group : work->groups) {
    if (mine || !work->take(group)) continue;
    fill_group(*work, group);
    mine = group.error;
  }
  if (mine) work->stop();
  // Rows and matchers belong to the caller, so nobody may be at them when this returns or throws.
  std::unique_lock lock(work->mutex);
  while (!work->done.wait_for(lock, kWait, [&] { return work->finished(); })) {
    lock.unlock();
    try {
      poll();
    } catch (...) {
      mine = std::current_exception();
      work->stop();
    }
    lock.lock();
  }
  if (mine) std::rethrow_exception(mine);
  for (const Group& group : work->groups) {
    if (group.error) std::rethrow_exception(group.error);
  }
}

uint64_t nanoseconds() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// How many threads pay, by what masks of this vocabulary cost lately.
size_t worthwhile(Vocabulary& vocabulary, size_t jobs) {
  static const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t work = jobs * vocabulary.mask_cost().load(std::memory_order_relaxed);
  return std::min({cores, jobs / kJobsPerThread, static_cast<size_t>(work / kWorkPerThread)});
}

}  // namespace

void fill_batch(std::span<BatchJob> jobs, size_t threads) {
  if (jobs.empty()) return;
  Vocabulary& vocabulary = jobs[0].matcher->constraint().vocabulary();
  if (threads == 0) threads = worthwhile(vocabulary, jobs.size());
  threads = std::min(threads, kMostThreads);
  const uint64_t start = nanoseconds();
  if (threads > 1) {
    fill_on_threads(jobs, threads);
  } else {
    threads = 1;
    for (BatchJob& job : jobs) fill_one(job);
  }
  // Other threads may do the same in between, which does not matter.  Waiting for threads is no cost
  // of masks: behind such a call the estimate only fades, so that one thread measures it again.
  std::atomic<uint64_t>& cost = vocabulary.mask_cost();
  const uint64_t before = cost.load(std::memory_order_relaxed);
  const uint64_t taken = (nanoseconds() - start) / jobs.size();
  cost.store(threads > 1 ? before - before / 16 : (before * 3 + taken) / 4,
             std::memory_order_relaxed);
}

}  // namespace constrain
