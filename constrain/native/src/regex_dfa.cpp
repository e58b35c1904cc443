// States of a regular expression: transitions, and questions about what can follow.
#include "constrain/regex_dfa.hpp"

#include <algorithm>
#include <utility>

#include "constrain/errors.hpp"
#include "constrain/poll.hpp"
#include "constrain/util.hpp"
#include "regex_terms.hpp"

namespace constrain {

namespace {

// Budgets of searches, in states looked at.
constexpr size_t kLiveBudget = size_t{1} << 16;
constexpr size_t kDistanceBudget = size_t{1} << 14;
constexpr size_t kConstantBudget = 24;
// Terms per state, on average, before max_states counts as reached.
constexpr size_t kTermsPerState = 32;
constexpr size_t kFreeTerms = 4096;

}  // namespace

RegexDfa::RegexDfa(std::span<const int32_t> program, size_t max_states) : max_states_(max_states) {
  regex::Loaded loaded;
  terms_ = regex::load(program, loaded);
  terms_->set_budget(max_states * kTermsPerState + kFreeTerms);
  interval_starts_ = std::move(loaded.interval_starts);
  interval_classes_ = std::move(loaded.interval_classes);
  representatives_ = std::move(loaded.representatives);
  num_classes_ = static_cast<uint32_t>(representatives_.size());
  for (uint32_t c = 0; c < 128; ++c) ascii_[c] = class_of_wide(c);
  start_ = intern(loaded.root, loaded.start_context);
}

RegexDfa::~RegexDfa() = default;
RegexDfa::RegexDfa(RegexDfa&&) noexcept = default;
RegexDfa& RegexDfa::operator=(RegexDfa&&) noexcept = default;

uint32_t RegexDfa::class_of_wide(uint32_t code_point) const {
  const auto after = std::upper_bound(interval_starts_.begin(), interval_starts_.end(), code_point);
  return interval_classes_[static_cast<size_t>(after - interval_starts_.begin()) - 1];
}

size_t RegexDfa::bytes() const {
  return sizeof(*this) + terms_->bytes() + table_.capacity() * sizeof(uint32_t) +
         info_.capacity() * sizeof(Info) + slots_.capacity() * sizeof(uint32_t) +
         (interval_starts_.capacity() + interval_classes_.capacity() +
          representatives_.capacity()) * sizeof(uint32_t);
}

uint32_t RegexDfa::intern(uint32_t formula, uint32_t context) {
  context &= terms_->formula(formula).mask;
  if ((info_.size() + 1) * 2 > slots_.size()) {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), 0);
    const size_t limit = slots_.size() - 1;
    for (size_t state = 0; state < info_.size(); ++state) {
      size_t i = mix64(pack(info_[state].formula, info_[state].context)) & limit;
      while (slots_[i] != 0) i = (i + 1) & limit;
      slots_[i] = static_cast<uint32_t>(state + 1);
    }
  }
  const size_t limit = slots_.size() - 1;
  size_t i = mix64(pack(formula, context)) & limit;
  for (; slots_[i] != 0; i = (i + 1) & limit) {
    const Info& info = info_[slots_[i] - 1];
    if (info.formula == formula && info.context == context) return slots_[i] - 1;
  }
  if (info_.size() >= max_states_) {
    throw LimitError("the regular expression needs more than " + std::to_string(max_states_) +
                         " states",
                     "max_states");
  }
  const regex::Formula& f = terms_->formula(formula);
  Info info{formula, context, kUnknown - 1, 0};
  if (terms_->null(formula, context)) {
    info.flags |= kAccepting | kLive;
    info.distance = 0;
  }
  if (f.live) info.flags |= kLive;
  if (f.plain) info.distance = f.min_length;
  if (formula == regex::kFalse) {
    info.flags |= kDead;
    info.distance = kUnreachable;
  }
  const uint32_t state = static_cast<uint32_t>(info_.size());
  table_.resize(table_.size() + num_classes_, kUnknown);
  info_.push_back(info);
  slots_[i] = state + 1;
  if (formula == regex::kFalse) set_constant(state, Constant::kNothing);
  if (formula == regex::kTrue) set_constant(state, Constant::kEverything);
  return state;
}

uint32_t RegexDfa::derive(uint32_t state, uint32_t cls) {
  if (info_.size() % 16 == 0) poll();
  const Info info = info_[state];
  terms_->begin_work();
  const uint32_t formula = terms_->derive(info.formula, cls, info.context);
  const uint32_t next = intern(formula, terms_->class_context(cls));
  table_[size_t{state} * num_classes_ + cls] = next;
  return next;
}

void RegexDfa::set_constant(uint32_t state, Constant value) {
  info_[state].flags = static_cast<uint8_t>((info_[state].flags & ~kConstantMask) |
                                            ((static_cast<uint8_t>(value) + 1) << kConstantShift));
}

RegexDfa::Constant RegexDfa::find_constant(uint32_t state) {
  Constant result = Constant::kNo;
  if (!live(state)) {
    result = Constant::kNothing;
  } else if (accepting(state)) {
    // Everything, if no state within reach refuses; most often a neighbour does.
    std::vector<uint32_t> seen = {state};
    bool refused = false;
    for (size_t i = 0; i < seen.size() && !refused; ++i) {
      for (uint32_t cls = 0; cls < num_classes_ && !refused; ++cls) {
        const uint32_t next = step_class(seen[i], cls);
        if ((info_[next].flags & kConstantMask) != 0 &&
            constant(next) == Constant::kEverything) {
          continue;
        }
        if (!accepting(next)) {
          refused = true;
        } else if (std::find(seen.begin(), seen.end(), next) == seen.end()) {
          seen.push_back(next);
        }
      }
      if (seen.size() > kConstantBudget) refused = true;
    }
    if (!refused) {
      for (uint32_t s : seen) set_constant(s, Constant::kEverything);
      return Constant::kEverything;
    }
  }
  set_constant(state, result);
  return result;
}

bool RegexDfa::find_live(uint32_t start) {
  // Depth first.  A state that is left behind without success is dead if nothing below it leads
  // back above it (Tarjan's lowest link), which is what makes the answers cacheable.
  struct Frame {
    uint32_t state, cls, order, low;
  };
  std::vector<Frame> path;
  std::vector<uint32_t> pending;  // visited, not yet decided
  FlatMap order;
  size_t budget = kLiveBudget;
  const auto enter = [&](uint32_t state) {
    const uint32_t n = static_cast<uint32_t>(pending.size());
    order.set(state, n);
    pending.push_back(state);
    path.push_back({state, 0, n, n});
  };
  enter(start);
  while (!path.empty()) {
    Frame& frame = path.back();
    if (frame.cls == num_classes_) {
      const Frame done = frame;
      path.pop_back();
      if (done.low == done.order) {
        while (pending.size() > done.order) {
          info_[pending.back()].flags |= kDead;
          info_[pending.back()].distance = kUnreachable;
          pending.pop_back();
        }
      }
      if (!path.empty()) path.back().low = std::min(path.back().low, done.low);
      continue;
    }
    const uint32_t next = step_class(frame.state, frame.cls++);
    const uint8_t flags = info_[next].flags;
    if ((flags & kDead) != 0) continue;
    if ((flags & kLive) != 0) {
      for (const Frame& f : path) info_[f.state].flags |= kLive;
      return true;
    }
    const uint32_t known = order.find(next);
    if (known != FlatMap::kMissing) {
      frame.low = std::min(frame.low, known);
      continue;
    }
    if (budget-- == 0) {
      // Not proved: "live" is the answer that refuses no valid text.
      info_[start].flags |= kLive;
      return true;
    }
    enter(next);
  }
  return false;
}

uint32_t RegexDfa::find_distance(uint32_t start) {
  if (!live(start)) return info_[start].distance = kUnreachable;
  // Best first by the length so far plus a lower bound of what is left.
  struct Entry {
    uint64_t total;
    uint32_t so_far, state;
  };
  const auto later = [](const Entry& x, const Entry& y) { return x.total > y.total; };
  FlatMap best;
  std::vector<Entry> heap;
  const auto push = [&](uint32_t state, uint32_t so_far) {
    const Info& info = info_[state];
    const uint32_t left =
        info.distance != kUnknown - 1 ? info.distance : terms_->formula(info.formula).min_length;
    if (left == kUnreachable) return;
    const uint32_t known = best.find(state);
    if (known != FlatMap::kMissing && known <= so_far) return;
    best.set(state, so_far);
    heap.push_back({uint64_t{so_far} + left, so_far, state});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  const auto remember = [&](uint64_t length) {
    return info_[start].distance =
               static_cast<uint32_t>(std::min<uint64_t>(length, kUnreachable - 2));
  };
  push(start, 0);
  size_t budget = kDistanceBudget;
  while (!heap.empty()) {
    const Entry entry = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    if (best.find(entry.state) != entry.so_far) continue;
    if (info_[entry.state].distance != kUnknown - 1 || budget-- == 0) return remember(entry.total);
    for (uint32_t cls = 0; cls < num_classes_; ++cls) {
      push(step_class(entry.state, cls), entry.so_far + 1);
    }
  }
  return info_[start].distance = kUnreachable;
}

}  // namespace constrain
