// Several cores on one product: for a search that has the machine to itself.
//
// A search that begins while no other runs gets the team's helpers: threads that wait, awake, for pieces
// of work. As soon as another search begins they sleep until both are over, because a core for each is
// the better way to share a machine; and so they do for a while after, because whoever had two searches
// at once is about to begin another, and needs the core for that. Pieces are taken one by one, and the
// caller does what nobody takes. It also looks whether that is quicker at all: if other programs need the
// cores, or if they are two halves of one, it goes on alone, and so do the next ones for a while.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace bothends {

class Team {
 public:
  // So many cores, that of the caller among them. Threads start with the first search.
  explicit Team(int members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int members() const { return members_; }
  // Pieces that helpers have done so far.
  int64_t helped() const { return helped_.load(); }

  // A search, from its beginning to its end.
  class Turn {
   public:
    explicit Turn(Team& team) : team_(team), has_helpers_(team.enter()) {}
    ~Turn() { team_.leave(has_helpers_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // The team, or nullptr if this search has to work alone.
    Team* team() const { return has_helpers_ ? &team_ : nullptr; }

   private:
    Team& team_;
    const bool has_helpers_;
  };

  // Whether helpers are awake; only the search that has them may ask, and share its work.
  bool awake() const { return awake_.load(std::memory_order_relaxed); }

  // A product: so many bytes of weights, and rows to multiply them by.
  struct Task {
    size_t bytes;
    int rows;
  };
  // work(piece) for every piece of it, in any order and on any core; returns when all are done.
  template <typename Work>
  void share(const Task& task, int pieces, const Work& work) {
    run(pieces, task,
        [](const void* context, int piece) { (*static_cast<const Work*>(context))(piece); }, &work);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Call = void (*)(const void* context, int piece);

  bool enter();
  void leave(bool had_helpers);
  // With the lock:
  void wake(bool awake);  // or send to sleep
  void later(Clock::time_point time) { not_before_ = std::max(not_before_, time); }
  void run(int pieces, const Task& task, Call call, const void* context);
  void hand_out(int pieces, Call call, const void* context);
  bool wait_for(int pieces);
  void give_up();
  bool work_on_a_piece();
  void help();

  const int members_;
  const int process_;  // a forked one has this object, and none of its threads

  // The present work: generation, pieces, next piece. A piece belongs to whoever counts it up, and
  // until it is done `call_` and `context_` stay as they are.
  std::atomic<uint64_t> ticket_{0};
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::atomic<int> done_{0};
  std::atomic<int64_t> helped_{0};

  // How quick the last products were, those with helpers and those without.
  struct Speed {
    double bytes = 0, ticks = 0;
    double rate() const { return ticks > 0 ? bytes / ticks : 0; }
  };
  struct Trial {
    int products = 0;
    Speed alone, together;
  };
  Trial trial_;
  std::chrono::milliseconds pause_;  // after the next trial that fails

  std::atomic<bool> awake_{false};
  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> changed_;
  int searches_ = 0;
  std::atomic<int> core_{-1};  // of the search that has the helpers
  Clock::time_point not_before_;  // the next search that may get them
  bool stop_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace bothends
