#include "team.h"

#if defined(__linux__)
#include <sched.h>
#endif
#include <unistd.h>

#include <system_error>

namespace bothends {

namespace {

constexpr int kPieceBits = 16;
constexpr uint64_t kPieceMask = (1u << kPieceBits) - 1;
// Without work for so long, a helper lets others run in between. A pause takes some 40 cycles.
constexpr int kPatience = 2000;
// A piece never takes so long, unless the system runs somebody else.
constexpr std::chrono::microseconds kLate(300);
// For so long no search gets helpers: after several at once, and after one that they did not help, twice
// as long each time.
constexpr std::chrono::milliseconds kCrowded(100), kUseless(500), kLongest(60000);
// Every so many products the caller does one alone. After so many it is asked whether helpers help, and
// how much quicker they must be at least.
constexpr int kSample = 12, kTrial = 240;
constexpr double kWorthwhile = 1.05;
// The products of steps, which are much alike; those of an encoder would outweigh them.
constexpr int kFewRows = 16;

// A clock that takes little time to read.
uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Leave the core of whoever is waited for: the system wakes a thread where its waker runs, and would
// move it a long while after.
void leave_core([[maybe_unused]] int core) {
#if defined(__linux__)
  cpu_set_t allowed, others;
  if (sched_getcpu() != core || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) {
    sched_setaffinity(0, sizeof allowed, &allowed);
  }
#endif
}

int this_core() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

}  // namespace

Team::Team(int members)
    : members_(members),
      process_(getpid()),
      pause_(kUseless),
      changed_(new std::condition_variable) {}

Team::~Team() {
  if (getpid() != process_) {
    // Threads that a fork has not taken along can be neither joined nor detached, only forgotten.
    new std::vector<std::thread>(std::move(helpers_));
    changed_.release();  // it would wait for those who wait for it
    return;
  }
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stop_ = true;
  }
  changed_->notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

bool Team::enter() {
  if (members_ == 1 || getpid() != process_) return false;
  const auto now = Clock::now();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (++searches_ > 1) later(now + kCrowded);
  const bool first = searches_ == 1 && now > not_before_;
  if (first) {
    core_ = this_core();
    try {
      while (static_cast<int>(helpers_.size()) < members_ - 1) {
        helpers_.emplace_back([this] { help(); });
      }
    } catch (const std::system_error&) {  // no more threads: the work is done all the same
    }
  }
  wake(first);
  return first;
}

void Team::leave(bool had_helpers) {
  if (members_ == 1 || getpid() != process_) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (searches_-- > 1) later(Clock::now() + kCrowded);
  if (had_helpers) wake(false);
}

void Team::wake(bool awake) {
  awake_ = awake;
  if (awake) changed_->notify_all();
}

void Team::run(int pieces, const Task& task, Call call, const void* context) {
  const bool counts = task.rows <= kFewRows;
  const bool sample = counts && ++trial_.products % kSample == 0;
  const uint64_t start = ticks();
  if (sample) {
    for (int piece = 0; piece < pieces; ++piece) call(context, piece);
  } else {
    hand_out(pieces, call, context);
    while (work_on_a_piece()) {
    }
    if (!wait_for(pieces)) return give_up();
  }
  if (!counts) return;
  Speed& speed = sample ? trial_.alone : trial_.together;
  speed.bytes += static_cast<double>(task.bytes);
  speed.ticks += static_cast<double>(ticks() - start);
  if (trial_.products < kTrial) return;
  // Cores that share no cache, or are two halves of one, may be slower together than one of them.
  if (trial_.together.rate() < kWorthwhile * trial_.alone.rate()) {
    give_up();
  } else {
    pause_ = kUseless;
  }
  trial_ = Trial();
}

void Team::hand_out(int pieces, Call call, const void* context) {
  call_ = call;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> (2 * kPieceBits)) + 1;
  ticket_.store(generation << (2 * kPieceBits) | static_cast<uint64_t>(pieces) << kPieceBits,
                std::memory_order_release);
}

// Until all pieces are done; false if that took too long.
bool Team::wait_for(int pieces) {
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == pieces; };
  for (int waited = 0; waited < kPatience; ++waited) {
    if (all_done()) return true;
    pause();
  }
  const auto start = Clock::now();
  while (!all_done()) std::this_thread::yield();
  return Clock::now() - start < kLate;
}

void Team::give_up() {
  const std::lock_guard<std::mutex> guard(mutex_);
  later(Clock::now() + pause_);
  pause_ = std::min(2 * pause_, kLongest);
  wake(false);
}

// Take a piece and do it; false if there is none.
bool Team::work_on_a_piece() {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  do {
    if ((ticket & kPieceMask) >= (ticket >> kPieceBits & kPieceMask)) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel));
  call_(context_, static_cast<int>(ticket & kPieceMask));
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void Team::help() {
  for (int waited = 0;;) {
    if (!awake()) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_->wait(lock, [this] { return stop_ || awake_.load(); });
        if (stop_) return;
      }
      leave_core(core_.load());
      waited = 0;
    }
    if (work_on_a_piece()) {
      ++helped_;
      waited = 0;
    } else if (++waited < kPatience) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace bothends
