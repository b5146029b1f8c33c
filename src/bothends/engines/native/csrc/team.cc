#include "team.h"

#include <unistd.h>

#include <system_error>

namespace bothends {

namespace {

constexpr int kPieceBits = 16;
constexpr uint64_t kPieceMask = (1u << kPieceBits) - 1;
// Without work for so long, a helper lets others run in between. A pause takes some 40 cycles.
constexpr int kPatience = 2000;
// A piece never takes so long, unless the system runs somebody else.
constexpr std::chrono::milliseconds kLate(2);
// After several searches at once, the next one that is alone does without helpers for so long.
constexpr std::chrono::milliseconds kCrowded(100);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

Team::Team(int members)
    : members_(members), process_(getpid()), changed_(new std::condition_variable) {}

Team::~Team() {
  if (getpid() != process_) {
    for (std::thread& helper : helpers_) helper.detach();
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
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (++searches_ > 1) crowded_ = now;
  const bool first = searches_ == 1 && now - crowded_ > kCrowded;
  if (first) {
    taken_ = alone_ = true;
    try {
      while (static_cast<int>(helpers_.size()) < members_ - 1) {
        helpers_.emplace_back([this] { help(); });
      }
    } catch (const std::system_error&) {  // no more threads: the work is done all the same
    }
  } else {
    alone_ = false;
  }
  update();
  return first;
}

void Team::leave(bool had_helpers) {
  if (members_ == 1 || getpid() != process_) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (searches_-- > 1) crowded_ = std::chrono::steady_clock::now();
  if (had_helpers) taken_ = false;
  update();
}

void Team::update() {
  const bool awake = taken_ && alone_;
  if (awake == awake_.load()) return;
  awake_ = awake;
  if (awake) changed_->notify_all();
}

void Team::run(int pieces, Call call, const void* context) {
  call_ = call;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> (2 * kPieceBits)) + 1;
  ticket_.store(generation << (2 * kPieceBits) | static_cast<uint64_t>(pieces) << kPieceBits,
                std::memory_order_release);
  while (work_on_a_piece()) {
  }
  wait_for(pieces);
}

void Team::wait_for(int pieces) {
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == pieces; };
  for (int waited = 0; waited < kPatience; ++waited) {
    if (all_done()) return;
    pause();
  }
  const auto start = std::chrono::steady_clock::now();
  while (!all_done()) std::this_thread::yield();
  if (std::chrono::steady_clock::now() - start < kLate) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  alone_ = false;
  update();
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
      std::unique_lock<std::mutex> lock(mutex_);
      changed_->wait(lock, [this] { return stop_ || awake_.load(); });
      if (stop_) return;
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
